// Frames of any size and layout, uint8, to the model's input [N, 3, H, W]: resized, padded,
// normalised; and the geometry that leads back.
//
// Each source byte comes from memory at most once, neighbours through the cache; writes 3 * H * W *
// sizeof(image_t) bytes an image. Bilinear reads at most 4 source pixels a picture pixel, area and
// antialias all that it covers, or twice that on each axis. Floor for 1080p to 640 x 640 in float16,
// bilinear: 2.1 MB read (one row of three, since the middle of three pixels is a pixel; 1.4 MB as
// NV12), 2.5 MB written, 1.1 us at 4 TB/s. For 720p, 2.8 MB read (every row), 1.3 us.
//
// Sizes and positions are whole-number arithmetic, so that every executor samples the same pixels
// with the same weights: a position is a multiple of 2^-32 px, a weight of 2^-11, and a blend is
// rounded to a grey level in OpenCV's steps. cv2.resize gives the same level, or the next one where
// its float32 position comes to another weight.
//
// Area and antialias add up weights in float32, each a whole number of 2^-32 px, in the order of the
// source's pixels.
//
// A thread has 4 pixels of a row, a warp's width apart, so that neighbouring lanes read and write
// neighbours.
#include "../frames.cuh"

constexpr int PER_THREAD = 4; // as in the contract
constexpr int WEIGHT_BITS = 11;
constexpr int ONE = 1 << WEIGHT_BITS;
constexpr long long PIXEL = 1ll << 32; // of the source, as positions count

struct Axis
{
    int source, picture, before; // frame size, resized size, padding before it; in px
    long long step;              // frame px from one picture pixel to the next, in 2^-32 px, up
};

struct Fit // in shared memory, made by one warp
{
    Axis axes[2]; // x, y
    float gain[3], offset[3]; // grey level to output, a channel
};

struct Sample // two neighbours of an axis; weight of the second in 1 / ONE
{
    int first, second, weight;
};

// The whole part of a division of numbers that are not negative. Below 2^53 a double has the same:
// where the quotient is no whole number, it is further from one than a rounding moves it. The
// division of 64-bit integers takes 100 instructions, for which a block would wait.
__device__ long long quotient(long long dividend, long long divisor)
{
    if (dividend < 1ll << 53) return static_cast<long long>(double(dividend) / double(divisor));
    return dividend / divisor;
}

__device__ Axis make_axis(int source, int picture, int room)
{
    const bool centred = Args::pad == Args::pad_center;
    const int before = centred ? (room - picture) / 2 : 0;
    const long long step = picture ? quotient((1ll * source << 32) + picture - 1, picture) : 0;
    return {source, picture, before, step};
}

// size * numerator / denominator, rounded to nearest (half up) or down, at least 1.
__device__ int scaled(int size, int numerator, int denominator)
{
    const int half = Args::rounding == Args::rounding_nearest ? denominator : 0;
    return max(1, int(quotient(2ll * size * numerator + half, 2ll * denominator)));
}

// A lane has an axis, or a channel; a warp calls.
__device__ void make_fit(const Args& args, int height, int width, Fit& fit)
{
    int picture_h = args.H, picture_w = args.W;
    if (height <= 0 || width <= 0) {
        picture_h = picture_w = height = width = 0; // a place of the batch that is not in use
    } else if (args.fit == args.fit_letterbox) {
        if (1ll * args.W * height <= 1ll * args.H * width)
            picture_h = scaled(height, args.W, width);
        else
            picture_w = scaled(width, args.H, height);
    }
    const int lane = threadIdx.x;
    if (lane < 2)
        fit.axes[lane] = make_axis(lane ? height : width, lane ? picture_h : picture_w,
                                   lane ? args.H : args.W);
    if (lane < 3) {
        fit.gain[lane] = args.scale / args.std[lane];
        fit.offset[lane] = -args.mean[lane] / args.std[lane];
    }
}

// A letterbox has one scale, that of the side that fills the input: what detectors are trained with
// and undo. A picture's other side is rounded to whole pixels, which moves no coordinate.
__device__ void write_geometry(float* row, const Axis& across, const Axis& down)
{
    const bool empty = across.picture == 0;
    float x = float(across.source) / Args::W, y = float(down.source) / Args::H;
    if (Args::fit == Args::fit_letterbox) x = y = fmaxf(x, y);
    row[0] = empty ? 1.0f : x;
    row[1] = empty ? 1.0f : y;
    row[2] = empty ? 0.0f : float(across.before);
    row[3] = empty ? 0.0f : float(down.before);
    row[4] = float(across.source);
    row[5] = float(down.source);
}

// Whether each picture pixel's middle is a frame pixel's, as from 1080p to 640 px: then nothing is
// blended along the axis.
__device__ bool meets_pixels(const Axis& axis) { return (axis.step & (2 * PIXEL - 1)) == PIXEL; }

__device__ Sample sample(const Axis& axis, int at)
{
    const int last = axis.source - 1;
    if (Args::interpolation == Args::interpolation_nearest) {
        const int nearest = min(int(at * axis.step >> 32), last);
        return {nearest, nearest, 0};
    }
    const long long position = ((2ll * at + 1) * axis.step >> 1) - (1ll << 31);
    const int first = int(position >> 32);
    const unsigned int fraction = static_cast<unsigned int>(position);
    const int weight = (fraction >> (32 - WEIGHT_BITS)) + (fraction >> (31 - WEIGHT_BITS) & 1);
    const int second = weight > 0 ? min(first + 1, last) : first; // what has no weight is not read
    return {max(first, 0), second, weight};
}

// Part of a blend that one row gives, in quarters of a grey level.
__device__ int quarters(int first, int second, int weight, int weight_of_row)
{
    return (first * (ONE - weight) + second * weight >> 4) * weight_of_row >> 16;
}

__device__ Levels blended(const Row& upper, const Row& lower, int v, const Sample& across)
{
    const Levels a = upper.at(across.first);
    if (Args::interpolation == Args::interpolation_nearest) return a;
    const Levels b = upper.at(across.second);
    const Levels c = lower.at(across.first);
    const Levels d = lower.at(across.second);
    const int w = across.weight;
    Levels levels;
    for (int i = 0; i < 3; ++i)
        levels.at[i] = (quarters(a.at[i], b.at[i], w, ONE - v) +
                        quarters(c.at[i], d.at[i], w, v) + 2) >> 2;
    return levels;
}

// ---- All that a picture pixel covers.

constexpr bool AREA = Args::interpolation == Args::interpolation_area;
constexpr bool COVERS = AREA || Args::interpolation == Args::interpolation_antialias;

struct Cover // on an axis, in 2^-32 px of the source
{
    int first, last;
    long long middle, reach; // where it begins and how long it is (area); its middle and its half

    __device__ float weight(int pixel) const
    {
        const long long at = pixel * PIXEL;
        if (AREA) return float(min(middle + reach, at + PIXEL) - max(middle, at));
        const long long distance = at + PIXEL / 2 - middle;
        return float(max(reach - max(distance, -distance), 0ll));
    }
};

__device__ Cover cover_of(const Axis& axis, int at)
{
    const int end = axis.source - 1;
    if (AREA) {
        const long long begin = at * axis.step;
        return {int(begin >> 32), min(int(begin + axis.step - 1 >> 32), end), begin, axis.step};
    }
    const long long middle = (2ll * at + 1) * axis.step >> 1, reach = max(axis.step, PIXEL);
    return {max(int(middle - reach + PIXEL / 2 >> 32), 0),
            min(int(middle + reach + PIXEL / 2 >> 32) - 1, end), middle, reach};
}

__device__ Levels covered(const Picture& picture, const Cover& down, const Cover& across)
{
    float sums[3] = {}, weights_down = 0.0f, weights_across = 0.0f;
    for (int y = down.first; y <= down.last; ++y) {
        const Row pixels = picture.row(y);
        float row[3] = {};
        weights_across = 0.0f;
        for (int x = across.first; x <= across.last; ++x) {
            const Levels levels = pixels.at(x);
            const float weight = across.weight(x);
            weights_across += weight;
            for (int i = 0; i < 3; ++i) row[i] += weight * float(levels.at[i]);
        }
        const float weight = down.weight(y);
        weights_down += weight;
        for (int i = 0; i < 3; ++i) sums[i] += weight * row[i];
    }
    Levels levels;
    for (int i = 0; i < 3; ++i)
        levels.at[i] = int(sums[i] / (weights_across * weights_down) + 0.5f);
    return levels;
}

// ---- A thread's pixels.

// All at once, also those beside the picture: behind a branch each would wait for memory.
template <typename LevelsAt>
__device__ void fill(Levels (&levels)[PER_THREAD], int left, const Axis& axis, LevelsAt levels_at)
{
    for (int i = 0; i < PER_THREAD; ++i) {
        const int x = left + i * blockDim.x - axis.before;
        levels[i] = levels_at(min(max(x, 0), axis.picture - 1));
    }
}

extern "C" __global__ void resize_letterbox(const __grid_constant__ Args args)
{
    using T = Args::image_t;
    __shared__ Fit fit;
    const int image = blockIdx.z;
    const int* size = args.frame_sizes + 3ull * image; // height px, width px, pitch bytes
    const Picture picture{args.frame_images[image], size[0], size[2]};
    if (threadIdx.y == 0) make_fit(args, size[0], size[1], fit);
    __syncthreads();
    const Axis &columns = fit.axes[0], &rows = fit.axes[1];
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0 && threadIdx.y == 0)
        write_geometry(args.geometry + 6ull * image, columns, rows);

    const int y = blockIdx.y * blockDim.y + threadIdx.y, picture_y = y - rows.before;
    const int left = blockIdx.x * blockDim.x * PER_THREAD + threadIdx.x;
    if (y >= args.H) return;
    const bool inside_y = picture_y >= 0 && picture_y < rows.picture;

    Levels levels[PER_THREAD]{};
    if (inside_y && COVERS) {
        const Cover down = cover_of(rows, picture_y);
        fill(levels, left, columns,
             [&](int x) { return covered(picture, down, cover_of(columns, x)); });
    } else if (inside_y) {
        const Sample down = sample(rows, picture_y);
        const Row upper = picture.row(down.first), lower = picture.row(down.second);
        if (down.weight == 0 && meets_pixels(columns))
            fill(levels, left, columns, [&](int x) { return upper.at(sample(columns, x).first); });
        else
            fill(levels, left, columns, [&](int x) {
                return blended(upper, lower, down.weight, sample(columns, x));
            });
    }

    for (int i = 0; i < PER_THREAD; ++i) {
        const int x = left + i * blockDim.x, picture_x = x - columns.before;
        if (x >= args.W) return;
        const bool inside = inside_y && picture_x >= 0 && picture_x < columns.picture;
        T* out = args.image + (3ull * image * args.H + y) * args.W + x;
        for (int channel = 0; channel < 3; ++channel) {
            const float level = inside ? levels[i].at[channel] : args.pad_value;
            const float value = fmaf(level, fit.gain[channel], fit.offset[channel]);
            store(out + 1ull * channel * args.H * args.W, value);
        }
    }
}
