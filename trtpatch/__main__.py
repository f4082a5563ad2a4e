"""`python -m trtpatch`: the command line."""

from trtpatch.cli import main

if __name__ == "__main__":
    main(prog_name="trtpatch")
