// Detections to something of one's own. A thread has a row: patch.yaml launches them over [N, M], M
// along x, with blocks of 128 threads.

extern "C" __global__ void count_example(const __grid_constant__ Args args)
{
    const int image = blockIdx.y, row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= min(args.detections_count[image], args.M)) return; // rows past the count mean nothing
    const int label = args.detections_classes[1ull * image * args.M + row];
    if (label < 0 || label >= args.classes) return;
    // Cleared before each frame. In whatever order threads add, the sum is the same.
    atomicAdd(args.class_counts + 1ull * image * args.classes + label, 1);
}
