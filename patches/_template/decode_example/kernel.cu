// Boxes and scores, [N, A, 4 + C], to candidates. A thread has an anchor, and so a row: patch.yaml
// launches them over [N, A], A along x, with blocks of 128 threads.

extern "C" __global__ void decode_example(const __grid_constant__ Args args)
{
    const int image = blockIdx.y, anchor = blockIdx.x * blockDim.x + threadIdx.x;
    const bool exists = anchor < args.A; // the last block has threads past the end
    const int row = exists ? anchor : 0;
    const auto* head = args.head + (1ull * image * args.A + row) * (4 + args.C);

    Best best; // of equal scores the first; a NaN stays, so that it is counted
    for (int label = 0; label < args.C; ++label) take(best, load(head + 4 + label), label);
    const Box box = {load(head), load(head + 1), load(head + 2), load(head + 3)};

    const bool above = best.score > *args.score_threshold;
    const bool nan = is_nan(best.score) || (above && has_nan(box));
    const bool keep = above && !nan;
    // Threads past the end come here too: a warp appends together.
    append(args, image, {exists && keep, exists && nan, box, best.score, best.index, anchor});
}
