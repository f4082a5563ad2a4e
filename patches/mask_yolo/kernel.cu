// Masks of YOLO-seg models: an object's logits are its K coefficients times the K prototypes
// [N, K, H, W]; they are interpolated to frame pixels inside the object's box, and what is above the
// threshold is its mask, one bit a pixel.
//
// Bytes an image, for B masks: reads the prototypes once, K * H * W * sizeof(protos_t), and 4 K B
// of coefficients; writes an eighth of a byte a pixel of each box. In between, 4 bytes a mask and a
// prototype pixel in or near its box, which stay in the cache. Floor for 32 prototypes of 160 x 160
// in float32 and 50 masks as large as 720 x 1280: 3.3 MB read and 5.8 MB written, 2.3 us at 4 TB/s.
//
// 1. assemble: a block has a tile of prototype pixels and sums up all masks that need it, eight at
//    a time; the tile stays in the first level of the cache meanwhile. Its first block also lays
//    the masks out. What it finds in a tile comes in any order; no result depends on it.
// 2. fill: a thread writes words of 32 neighbouring pixels; it reads a logit again only where the
//    pixels come to the next one.
//
// All work is that of the detections that there are, whatever room there is.
#include "../sampling.cuh"

constexpr unsigned int ALL = 0xffffffffu;
constexpr int WARP = 32;
constexpr int TILE_W = 32, TILE_H = 4;   // prototype pixels a block, as in the contract
constexpr int THREADS = TILE_W * TILE_H; // a block, as in the contract
constexpr int TOGETHER = 8;              // masks summed up at once
constexpr int PIXELS = 32;               // of a word

__device__ int masks_wanted(const Args& args, int image)
{
    return min(args.detections_count[image], args.B);
}

// ---- Where masks lie.

struct Crop // in frame pixels
{
    int x, y, width, height;

    __device__ int words_a_row() const { return (width + PIXELS - 1) / PIXELS; }
};

// The pixels whose left upper corners lie in the box.
__device__ Crop crop_of(const Args& args, int image, int row)
{
    const Box box = reinterpret_cast<const Box*>(args.detections_boxes)[1ull * image * args.M + row];
    const int x = int(ceilf(box.x1)), y = int(ceilf(box.y1));
    return {x, y, max(int(ceilf(box.x2)) - x, 0), max(int(ceilf(box.y2)) - y, 0)};
}

__device__ Crop kept_part(const Args& args, int image, int row)
{
    const float* geometry = args.geometry + 6ull * image;
    if (Args::whole) return {0, 0, int(geometry[4]), int(geometry[5])};
    return crop_of(args, image, row);
}

// One warp gives each mask its place, one mask behind the other, as far as there is room.
__device__ void lay_out(const Args& args, int image, int lane)
{
    const int wanted = masks_wanted(args, image);
    const unsigned int room = args.R;
    unsigned int end = 0; // of the masks before; stays just above the room once it is there
    int kept = 0, used = 0;
    for (int first = 0; first < args.B; first += WARP) {
        const int row = first + lane;
        Crop crop{};
        unsigned int words = 0;
        if (row < wanted) {
            crop = kept_part(args, image, row);
            words = static_cast<unsigned int>(
                min(1ll * crop.words_a_row() * crop.height, room + 1ll));
        }
        unsigned int through = words; // of the lanes up to this one
        for (int distance = 1; distance < WARP; distance *= 2) {
            const unsigned int before = __shfl_up_sync(ALL, through, distance);
            if (lane >= distance) through += before;
        }
        through += end;
        const bool fits = row < wanted && through <= room;
        const unsigned int fitting = __ballot_sync(ALL, fits);
        if (fitting) used = __shfl_sync(ALL, int(through), __popc(fitting) - 1);
        kept += __popc(fitting);
        end = min(__shfl_sync(ALL, through, WARP - 1), room + 1);
        if (row >= args.B) continue;
        const unsigned long long at = 1ull * image * args.B + row;
        reinterpret_cast<Crop*>(args.masks_boxes)[at] = fits ? crop : Crop{};
        args.masks_starts[at] = fits ? int(through - words) : 0;
    }
    if (lane == 0) {
        args.masks_count[image] = kept;
        args.masks_used[image] = used;
    }
}

// ---- 1. Logits at the prototypes' resolution.

__device__ bool needs_tile(const Axis& x, const Axis& y, const Crop& crop, int left, int top)
{
    if (crop.width <= 0 || crop.height <= 0) return false;
    return sample(x, crop.x).first < left + TILE_W && sample(y, crop.y).first < top + TILE_H &&
           sample(x, crop.x + crop.width - 1).second >= left &&
           sample(y, crop.y + crop.height - 1).second >= top;
}

extern "C" __global__ void mask_yolo_assemble(const __grid_constant__ Args args)
{
    __shared__ int needed[Args::B];
    __shared__ int needed_count;
    __shared__ Pack<float, TOGETHER> weights[Args::K];
    const int image = blockIdx.z, left = blockIdx.x * TILE_W, top = blockIdx.y * TILE_H;
    const int thread = threadIdx.y * TILE_W + threadIdx.x;
    const int wanted = masks_wanted(args, image);
    if (blockIdx.x == 0 && blockIdx.y == 0 && thread < WARP) lay_out(args, image, thread);
    if (thread == 0) needed_count = 0;
    __syncthreads();
    const Axis across = axis_x(args, image), down = axis_y(args, image);
    for (int row = thread; row < wanted; row += THREADS)
        if (needs_tile(across, down, crop_of(args, image, row), left, top))
            needed[atomicAdd(&needed_count, 1)] = row;
    __syncthreads();

    const int x = left + threadIdx.x, y = top + threadIdx.y;
    const bool exists = x < args.W && y < args.H;
    const unsigned long long plane = 1ull * args.H * args.W, pixel = 1ull * y * args.W + x;
    const auto* protos = args.protos + 1ull * image * args.K * plane + pixel;
    for (int first = 0; first < needed_count; first += TOGETHER) {
        for (int i = thread; i < TOGETHER * args.K; i += THREADS) {
            const int mask = i / args.K, k = i % args.K;
            const int row = needed[min(first + mask, needed_count - 1)];
            weights[k].at[mask] = args.columns[(1ull * image * args.M + row) * args.K + k];
        }
        __syncthreads();
        float sums[TOGETHER] = {};
        if (exists) {
#pragma unroll 8
            for (int k = 0; k < args.K; ++k) {
                const float proto = load(protos + k * plane);
                for (int mask = 0; mask < TOGETHER; ++mask)
                    sums[mask] = sums[mask] + weights[k].at[mask] * proto;
            }
            for (int mask = 0; mask < TOGETHER; ++mask)
                if (first + mask < needed_count)
                    args.logits[(1ull * image * args.B + needed[first + mask]) * plane + pixel] =
                        sums[mask];
        }
        __syncthreads();
    }
}

// ---- 2. Bits in the frame.

// The mask that a word belongs to: the last one that begins at it or before it.
__device__ int mask_of(const int* starts, int count, int word)
{
    int low = 0, high = count; // starts[low] <= word, and starts[high] is above
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (starts[middle] <= word)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// Bits of pixels first to last - 1 of a frame's row, the first of all pixels lowest.
__device__ unsigned int bits_of_row(const Axis& across, const float* upper, const float* lower,
                                    float weight, int begin, int first, int last, float threshold)
{
    unsigned int bits = 0;
    int at = -1;
    float left = 0.0f, right = 0.0f;
    for (int x = first; x < last; ++x) {
        const Sample one = sample(across, x);
        if (one.first != at) {
            at = one.first;
            left = blend(upper[one.first], lower[one.first], weight);
            right = blend(upper[one.second], lower[one.second], weight);
        }
        if (blend(left, right, one.weight) > threshold) bits |= 1u << (x - begin);
    }
    return bits;
}

extern "C" __global__ void mask_yolo_fill(const __grid_constant__ Args args)
{
    __shared__ int starts[Args::B];
    const int image = blockIdx.y, begin = blockIdx.x * THREADS + threadIdx.x;
    const int count = args.masks_count[image], used = args.masks_used[image];
    if (blockIdx.x * THREADS >= used) return;
    for (int row = threadIdx.x; row < count; row += THREADS)
        starts[row] = args.masks_starts[1ull * image * args.B + row];
    __syncthreads();

    const Axis across = axis_x(args, image), down = axis_y(args, image);
    const float threshold = *args.mask_threshold;
    for (int word = begin; word < used; word += gridDim.x * THREADS) {
        const int row = mask_of(starts, count, word);
        const unsigned long long at = 1ull * image * args.B + row;
        const Crop kept = reinterpret_cast<const Crop*>(args.masks_boxes)[at];
        const int pitch = kept.words_a_row(), inside = word - starts[row];
        const int y = kept.y + inside / pitch, x = kept.x + inside % pitch * PIXELS;
        const Crop crop = Args::whole ? crop_of(args, image, row) : kept;
        unsigned int bits = 0;
        if (y >= crop.y && y < crop.y + crop.height) {
            const Sample rows = sample(down, y);
            const float* logits = args.logits + at * args.H * args.W;
            bits = bits_of_row(across, logits + rows.first * args.W, logits + rows.second * args.W,
                               rows.weight, x, max(x, crop.x),
                               min(x + PIXELS, crop.x + crop.width), threshold);
        }
        args.masks_words[1ull * image * args.R + word] = bits;
    }
}
