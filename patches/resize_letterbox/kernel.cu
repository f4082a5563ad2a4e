// Frames of any size, uint8 [height, width, 3], to the model's input [N, 3, H, W]: resized, padded,
// normalised; and the geometry that leads back.
//
// Reads at most 4 source pixels a picture pixel, neighbours through the cache, so each source byte
// comes from memory at most once; writes 3 * H * W * sizeof(image_t) bytes an image. Floor for
// 1080p to 640 x 640 in float16: 4.1 MB read (two rows of three), 2.5 MB written, 1.7 us at 4 TB/s.
//
// Sizes and positions are whole-number arithmetic, so that every executor samples the same pixels
// with the same weights: a position is a multiple of 2^-32 px, a weight of 2^-11, and a blend is
// rounded to a grey level in OpenCV's steps. cv2.resize gives the same level, or the next one where
// its float32 position comes to another weight.
//
// A thread writes 4 neighbours of a row, in one access a channel where W and the address allow.

constexpr int PER_THREAD = 4; // as in the contract
constexpr int WEIGHT_BITS = 11;
constexpr int ONE = 1 << WEIGHT_BITS;

struct Axis
{
    int source, picture, before; // frame size, resized size, padding before it; in px
    long long step;              // frame px from one picture pixel to the next, in 2^-32 px, up
};

struct Fit // in shared memory, made by one thread
{
    Axis x, y;
    float gain[3], offset[3]; // grey level to output, a channel
};

struct Sample // two neighbours of an axis; weight of the second in 1 / ONE
{
    int first, second, weight;
};

__device__ Axis make_axis(int source, int picture, int room)
{
    const bool centred = Args::pad == Args::pad_center;
    const int before = centred ? (room - picture) / 2 : 0;
    const long long step = picture ? ((1ll * source << 32) + picture - 1) / picture : 0;
    return {source, picture, before, step};
}

// size * numerator / denominator, rounded to nearest (half up) or down, at least 1.
__device__ int scaled(int size, int numerator, int denominator)
{
    const int half = Args::rounding == Args::rounding_nearest ? denominator : 0;
    return max(1, int((2ll * size * numerator + half) / (2ll * denominator)));
}

__device__ Fit make_fit(const Args& args, int height, int width)
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
    Fit fit{make_axis(width, picture_w, args.W), make_axis(height, picture_h, args.H)};
    for (int channel = 0; channel < 3; ++channel) {
        fit.gain[channel] = args.scale / args.std[channel];
        fit.offset[channel] = -args.mean[channel] / args.std[channel];
    }
    return fit;
}

// A letterbox has one scale, that of the side that fills the input: what detectors are trained with
// and undo. A picture's other side is rounded to whole pixels, which moves no coordinate.
__device__ void write_geometry(float* row, const Fit& fit)
{
    const bool empty = fit.x.picture == 0;
    float x = float(fit.x.source) / Args::W, y = float(fit.y.source) / Args::H;
    if (Args::fit == Args::fit_letterbox) x = y = fmaxf(x, y);
    row[0] = empty ? 1.0f : x;
    row[1] = empty ? 1.0f : y;
    row[2] = empty ? 0.0f : float(fit.x.before);
    row[3] = empty ? 0.0f : float(fit.y.before);
    row[4] = float(fit.x.source);
    row[5] = float(fit.y.source);
}

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
    return {max(first, 0), min(first + 1, last), weight};
}

// Part of a blend that one row gives, in quarters of a grey level.
__device__ int quarters(int first, int second, int weight, int weight_of_row)
{
    return (first * (ONE - weight) + second * weight >> 4) * weight_of_row >> 16;
}

extern "C" __global__ void resize_letterbox(const Args args)
{
    using T = Args::image_t;
    __shared__ Fit fit;
    const int image = blockIdx.z;
    const int* size = args.frame_sizes + 3ull * image; // height px, width px, pitch bytes
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        fit = make_fit(args, size[0], size[1]);
        if (blockIdx.x == 0 && blockIdx.y == 0) write_geometry(args.geometry + 6ull * image, fit);
    }
    __syncthreads();

    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    const int x = (blockIdx.x * blockDim.x + threadIdx.x) * PER_THREAD;
    if (y >= args.H || x >= args.W) return;

    const unsigned char* __restrict__ pixels = args.frame_images[image];
    const int picture_y = y - fit.y.before;
    const bool inside_y = picture_y >= 0 && picture_y < fit.y.picture;
    const Sample down = inside_y ? sample(fit.y, picture_y) : Sample{};
    const unsigned char* upper = pixels + 1ll * down.first * size[2];
    const unsigned char* lower = pixels + 1ll * down.second * size[2];

    Pack<T, PER_THREAD> out[3];
    for (int i = 0; i < PER_THREAD; ++i) {
        const int picture_x = x + i - fit.x.before;
        const bool inside = inside_y && picture_x >= 0 && picture_x < fit.x.picture;
        const Sample across = inside ? sample(fit.x, picture_x) : Sample{};
        for (int channel = 0; channel < 3; ++channel) {
            int grey = args.pad_value;
            if (inside) {
                const bool swapped = (args.frame_layout == args.frame_layout_bgr) != (args.color == args.color_bgr);
                const int from = swapped ? 2 - channel : channel;
                const int a = 3 * across.first + from, b = 3 * across.second + from;
                const int w = across.weight, v = down.weight;
                grey = (quarters(upper[a], upper[b], w, ONE - v) +
                        quarters(lower[a], lower[b], w, v) + 2) >> 2;
            }
            from_float(fmaf(float(grey), fit.gain[channel], fit.offset[channel]),
                       out[channel].at[i]);
        }
    }
    for (int channel = 0; channel < 3; ++channel) {
        T* row = args.image + ((3ull * image + channel) * args.H + y) * args.W + x;
        if (args.W % PER_THREAD == 0 && aligned_for<Pack<T, PER_THREAD>>(row))
            *reinterpret_cast<Pack<T, PER_THREAD>*>(row) = out[channel];
        else
            for (int i = 0; i < PER_THREAD && x + i < args.W; ++i) row[i] = out[channel].at[i];
    }
}
