// What the patches share that read frames: a pixel's grey levels, in the order of the model's
// channels, whatever the frame's layout. The contract has the parameters color, yuv_matrix and
// yuv_range.

struct Levels // 0 to 255, one a channel of the model
{
    int at[3];
};

// ---- From Y, U, V to levels, as ITU-R BT.601 and BT.709 have it, in whole numbers of 2^-20 levels.

constexpr bool LIMITED = Args::yuv_range == Args::yuv_range_limited; // 16 to 235, chroma 16 to 240
constexpr double OF_RED = Args::yuv_matrix == Args::yuv_matrix_bt601 ? 0.299 : 0.2126;
constexpr double OF_BLUE = Args::yuv_matrix == Args::yuv_matrix_bt601 ? 0.114 : 0.0722;
constexpr double OF_GREEN = 1.0 - OF_RED - OF_BLUE;
constexpr double CHROMA = LIMITED ? 255.0 / 224.0 : 1.0;

constexpr int FRACTION_BITS = 20;
constexpr int BLACK = LIMITED ? 16 : 0;
constexpr int LUMA = int((LIMITED ? 255.0 / 219.0 : 1.0) * 1048576.0 + 0.5);
constexpr int V_TO_RED = int(2.0 * (1.0 - OF_RED) * CHROMA * 1048576.0 + 0.5);
constexpr int U_TO_BLUE = int(2.0 * (1.0 - OF_BLUE) * CHROMA * 1048576.0 + 0.5);
constexpr int V_FROM_GREEN =
    int(2.0 * (1.0 - OF_RED) * OF_RED / OF_GREEN * CHROMA * 1048576.0 + 0.5);
constexpr int U_FROM_GREEN =
    int(2.0 * (1.0 - OF_BLUE) * OF_BLUE / OF_GREEN * CHROMA * 1048576.0 + 0.5);

__device__ inline int to_level(int value)
{
    return min(max((value + (1 << (FRACTION_BITS - 1))) >> FRACTION_BITS, 0), 255);
}

__device__ inline Levels rgb_of_yuv(int luma, int u, int v)
{
    const int grey = (luma - BLACK) * LUMA, blue = u - 128, red = v - 128;
    return {to_level(grey + red * V_TO_RED),
            to_level(grey - red * V_FROM_GREEN - blue * U_FROM_GREEN),
            to_level(grey + blue * U_TO_BLUE)};
}

// ---- The frame.

constexpr bool BGR = Args::frame_layout == Args::frame_layout_bgr ||
                     Args::frame_layout == Args::frame_layout_bgr_planar;
constexpr bool SWAPPED = BGR != (Args::color == Args::color_bgr);

struct Row // of a frame
{
    const unsigned char* __restrict__ bytes;
    const unsigned char* __restrict__ chroma; // of NV12
    long long plane;                          // from one channel to the next, where they lie apart

    __device__ Levels at(int x) const
    {
        Levels levels;
        if (Args::frame_layout == Args::frame_layout_nv12) {
            levels = rgb_of_yuv(bytes[x], chroma[x / 2 * 2], chroma[x / 2 * 2 + 1]);
        } else if (Args::frame_layout == Args::frame_layout_gray) {
            levels.at[0] = levels.at[1] = levels.at[2] = bytes[x];
        } else if (Args::frame_layout == Args::frame_layout_rgb ||
                   Args::frame_layout == Args::frame_layout_bgr) {
            for (int i = 0; i < 3; ++i) levels.at[i] = bytes[3 * x + i];
        } else {
            for (int i = 0; i < 3; ++i) levels.at[i] = bytes[i * plane + x];
        }
        return SWAPPED ? Levels{levels.at[2], levels.at[1], levels.at[0]} : levels;
    }
};

struct Picture
{
    const unsigned char* bytes;
    int height, pitch; // in pixels, and in bytes

    __device__ Row row(int y) const
    {
        return {bytes + 1ll * y * pitch, bytes + 1ll * (height + y / 2) * pitch,
                1ll * height * pitch};
    }
};
