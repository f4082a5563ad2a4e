// Begins a walk. Row y of blocks brings or zeroes piece y, 16 bytes a thread: the frame table comes
// over the bus from pinned host memory, a few KB; zeros go to what kernels count in.

struct Piece {
    uint4* to;
    const uint4* from;  // null where zeros are wanted
    unsigned long long words;
};

struct Args {
    Piece pieces[PIECES];
};

extern "C" __global__ void begin(const Args args) {
    const Piece piece = args.pieces[blockIdx.y];
    const unsigned step = gridDim.x * blockDim.x;
    for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < piece.words; i += step)
        piece.to[i] = piece.from ? piece.from[i] : make_uint4(0, 0, 0, 0);
}
