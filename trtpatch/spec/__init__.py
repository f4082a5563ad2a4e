"""What people write: contracts, registries and pipeline files, read and checked.

Reading order: `yamlfile` (text to data with marks), `validate` (data to a schema), `expressions`
and `dims` (the arithmetic of shapes), `dtypes`, `ports`, then the three schemas `patch`, `registry`
and `pipeline`.
"""
