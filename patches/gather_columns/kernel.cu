// Of a head [N, D, A], where anchors lie side by side: its last K columns, of the anchors that the
// detections come from.
//
// Reads K values a detection, each from another sector of 32 bytes; writes 4 K bytes a place. Floor:
// a launch; 100 detections with 32 columns are 100 kB of sectors and 13 kB of values.
//
// A thread has one value; a place without a detection gets zeros, and reads nothing.

extern "C" __global__ void gather_columns(const __grid_constant__ Args args)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y, image = blockIdx.z;
    if (column >= args.K || row >= args.M) return;
    const unsigned long long at = 1ull * image * args.M + row;
    float value = 0.0f;
    if (row < args.detections_count[image]) {
        const unsigned long long plane = 1ull * image * args.D + (args.D - args.K + column);
        value = load(args.head + plane * args.A + args.detections_anchors[at]);
    }
    args.columns[at * args.K + column] = value;
}
