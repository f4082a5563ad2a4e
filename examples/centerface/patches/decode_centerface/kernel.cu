// One thread a cell: neighbouring threads read neighbouring cells, and only those of a face go on
// to the other maps.
extern "C" __global__ void decode_centerface(const Args args)
{
    const int image = blockIdx.y, anchor = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned long long map = 1ull * image * args.A + anchor;

    Candidate candidate{};
    if (anchor < args.A) {
        candidate.score = load(args.heatmap + map);
        candidate.anchor = anchor;
        candidate.nan = is_nan(candidate.score);
        candidate.keep = candidate.score > *args.score_threshold;
    }
    if (candidate.keep) {
        const unsigned long long y = map + 1ull * image * args.A, x = y + args.A; // of two maps
        const float stride = args.stride;
        candidate.box = box_around(
            (anchor % args.W + load(args.offset + x) + 0.5f) * stride,
            (anchor / args.W + load(args.offset + y) + 0.5f) * stride,
            expf(load(args.scale + x)) * stride, expf(load(args.scale + y)) * stride);
        candidate.nan = has_nan(candidate.box);
        candidate.keep = !candidate.nan;
    }
    append(args, image, candidate);
}
