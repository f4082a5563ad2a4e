// What the patches that select share: the order of the candidates, the way to frame pixels, and the
// rows of the detections port.

constexpr int WARP = 32;
constexpr unsigned int ALL = 0xffffffffu;

template <typename Fields>
__device__ inline int candidates_of(const Fields& args, int image)
{
    return min(args.candidates_count[image], args.A);
}

// ---- The order: by score from the highest, equal scores by anchor, then by class.

// Larger comes first: the score's bits, made to sort as a number does, then the anchor from below.
template <typename Fields>
__device__ inline unsigned long long sort_key(const Fields& args, unsigned long long at)
{
    const float score = args.candidates_scores[at] + 0.0f; // -0 and 0 are equal
    const unsigned int bits = __float_as_uint(score);
    const unsigned int sortable = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (1ull * sortable << 32) | ~static_cast<unsigned int>(args.candidates_anchors[at]);
}

// Same score and anchor, as from a head that gives an anchor several classes: by class.
template <typename Fields>
__device__ inline bool first_of_equals(const Fields& args, unsigned long long base, int slot,
                                       int other)
{
    const int label = args.candidates_classes[base + slot];
    const int other_label = args.candidates_classes[base + other];
    return label < other_label || (label == other_label && slot < other);
}

constexpr int RANKED = 4; // candidates that a warp ranks at once

// How many of an image's candidates come before each of RANKED of them, those from slot `first` on.
// A whole warp calls, and each lane gets the numbers; those of slots past `count` mean nothing.
template <typename Fields>
__device__ inline void rank(const Fields& args, unsigned long long base, int count, int first,
                            int (&before)[RANKED])
{
    unsigned long long keys[RANKED];
    for (int i = 0; i < RANKED; ++i) {
        keys[i] = first + i < count ? sort_key(args, base + first + i) : 0;
        before[i] = 0;
    }
    for (int slot = threadIdx.x % WARP; slot < count; slot += WARP) {
        const unsigned long long key = sort_key(args, base + slot);
        for (int i = 0; i < RANKED; ++i) {
            before[i] += key > keys[i];
            if (key == keys[i] && slot != first + i && first + i < count)
                before[i] += first_of_equals(args, base, slot, first + i);
        }
    }
    for (int i = 0; i < RANKED; ++i)
        for (int distance = WARP / 2; distance > 0; distance /= 2)
            before[i] += __shfl_xor_sync(ALL, before[i], distance);
}

// ---- Overlaps.

// The area of a box; one turned inside out has none.
__device__ inline float area_of(Box box)
{
    return fmaxf((box.x2 - box.x1) * (box.y2 - box.y1), 0.0f);
}

// The area that two boxes have in common: above 0 where they meet, and only there.
__device__ inline float common_area(Box a, Box b)
{
    const float width = fminf(a.x2, b.x2) - fmaxf(a.x1, b.x1);
    const float height = fminf(a.y2, b.y2) - fmaxf(a.y1, b.y1);
    return fmaxf(width, 0.0f) * height;
}

// ---- The detections.

// Model pixels to frame pixels, inside the frame.
__device__ inline Box to_frame(Box box, const float* geometry)
{
    const float scale_x = geometry[0], scale_y = geometry[1], left = geometry[2], top = geometry[3];
    const float width = geometry[4], height = geometry[5];
    return {fminf(fmaxf((box.x1 - left) * scale_x, 0.0f), width),
            fminf(fmaxf((box.y1 - top) * scale_y, 0.0f), height),
            fminf(fmaxf((box.x2 - left) * scale_x, 0.0f), width),
            fminf(fmaxf((box.y2 - top) * scale_y, 0.0f), height)};
}

template <typename Fields>
__device__ inline void write_row(const Fields& args, int image, int row, Box box, float score,
                                 int label, int anchor)
{
    const unsigned long long at = 1ull * image * args.M + row;
    reinterpret_cast<Box*>(args.detections_boxes)[at] = box;
    args.detections_scores[at] = score;
    args.detections_classes[at] = label;
    args.detections_anchors[at] = anchor;
}
