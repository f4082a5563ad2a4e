// End-to-end head, [N, A, D]: x1 y1 x2 y2 in model pixels, score, class, and columns that are left
// alone; what is left of it after suppression, or what never needed any.
//
// Reads 6 * sizeof(head_t) bytes a row once; writes 28 bytes a candidate. Floor: 24 * N * A
// bytes in float32, 7 kB for 300 rows: a launch is all that it costs.
//
// A thread has a row.
#include "../heads.cuh"

extern "C" __global__ void decode_end2end(const Args args)
{
    const int image = blockIdx.y, anchor = blockIdx.x * blockDim.x + threadIdx.x;
    const bool exists = anchor < args.A;
    const auto* row = args.head + (1ull * image * args.A + min(anchor, args.A - 1)) * args.D;
    Box box = {load(row), load(row + 1), load(row + 2), load(row + 3)};
    // A NaN would become class 0 on a GPU, and -2^31 on a CPU.
    const float label = load(row + 5);
    const bool is_class = label >= 0.0f && label < 2147483648.0f;
    if (!is_class) box.x1 = __uint_as_float(0x7fc00000u); // drops the row, and counts it
    append_above(args, image, exists, load(row + 4), is_class ? int(label) : 0, anchor, box);
}
