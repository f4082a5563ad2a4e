// Of a head [N, A, D], where an anchor is a row: its last K columns, of the anchors that the
// detections come from.
//
// Reads K * sizeof(head_t) bytes a detection, side by side; writes 4 K bytes a place. Floor: a
// launch; 100 detections with 32 columns are 26 kB.
//
// A thread has one value; a place without a detection gets zeros, and reads nothing.

extern "C" __global__ void gather_rows(const __grid_constant__ Args args)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y, image = blockIdx.z;
    if (column >= args.K || row >= args.M) return;
    const unsigned long long at = 1ull * image * args.M + row;
    float value = 0.0f;
    if (row < args.detections_count[image]) {
        const unsigned long long anchor = 1ull * image * args.A + args.detections_anchors[at];
        value = load(args.head + anchor * args.D + (args.D - args.K + column));
    }
    args.columns[at * args.K + column] = value;
}
