// What the patches share: element types, 16-byte accesses, the best class, the candidates port.
// Built-in types only. This text stands before the generated `Args` and the kernel.

// ---- Element types: memory holds float or float16, arithmetic is always float.

struct float16
{
    unsigned short bits;
};

__device__ inline float to_float(float value) { return value; }

__device__ inline float to_float(float16 value)
{
#ifdef TRTPATCH_HOST
    return trtpatch_half_to_float(value.bits);
#else
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
    return wide;
#endif
}

__device__ inline void from_float(float value, float& out) { out = value; }

// Rounds to the nearest half, ties to even.
__device__ inline void from_float(float value, float16& out)
{
#ifdef TRTPATCH_HOST
    out.bits = trtpatch_float_to_half(value);
#else
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.bits) : "f"(value));
#endif
}

template <typename T> __device__ inline float load(const T* address) { return to_float(*address); }

template <typename T> __device__ inline void store(T* address, float value)
{
    from_float(value, *address);
}

// NaN is the only value that differs from itself; kernels are compiled without fast-math.
__device__ inline bool is_nan(float value) { return value != value; }

// ---- Wide accesses: one instruction for Size neighbours, where the real address allows it.

template <typename T, int Size> struct alignas(sizeof(T) * Size) Pack
{
    static constexpr int size = Size;
    T at[Size];
};

template <typename T> using Wide = Pack<T, 16 / int(sizeof(T))>;

template <typename P> __device__ inline bool aligned_for(const void* address)
{
    return reinterpret_cast<unsigned long long>(address) % sizeof(P) == 0;
}

// ---- The best class of an anchor. A NaN wins over every score and stays, so that none is lost.

struct Best
{
    float score = __uint_as_float(0xff800000u); // -infinity
    int index = 0;
};

__device__ inline void take(Best& best, float score, int index)
{
    if (score > best.score || is_nan(score)) best = {score, index};
}

// As `take`, for indices in any order: of equal scores the lowest index is the best.
__device__ inline void merge(Best& best, Best other)
{
    const bool first_of_equals = other.score == best.score && other.index < best.index;
    if (other.score > best.score || is_nan(other.score) || first_of_equals) best = other;
}

// The best of row[Begin] to row[End - 1], its index counted from Begin, found by Lanes neighbouring
// lanes together; each of them gets it. The whole warp calls; `active` is equal within those lanes.
template <int Begin, int End, int Lanes, typename T>
__device__ inline Best best_in_row(const T* row, bool active)
{
    const int lane = threadIdx.x % Lanes;
    Best best;
    if (active && End % Wide<T>::size == 0 && aligned_for<Wide<T>>(row)) {
        for (int first = lane * Wide<T>::size; first < End; first += Lanes * Wide<T>::size) {
            const auto values = *reinterpret_cast<const Wide<T>*>(row + first);
            for (int i = 0; i < Wide<T>::size; ++i)
                if (first + i >= Begin) take(best, to_float(values.at[i]), first + i - Begin);
        }
    } else if (active) {
#pragma unroll 4
        for (int at = Begin + lane; at < End; at += Lanes) take(best, load(row + at), at - Begin);
    }
    for (int distance = Lanes / 2; distance > 0; distance /= 2) {
        const float score = __shfl_xor_sync(0xffffffffu, best.score, distance);
        const int index = __shfl_xor_sync(0xffffffffu, best.index, distance);
        merge(best, {score, index});
    }
    return best;
}

// ---- Boxes.

struct alignas(16) Box // x1 y1 x2 y2
{
    float x1, y1, x2, y2;
};

// Halving is exact, so a fused multiply-add gives the same corners as separate roundings.
__device__ inline Box box_around(float x, float y, float width, float height)
{
    return {x - width * 0.5f, y - height * 0.5f, x + width * 0.5f, y + height * 0.5f};
}

__device__ inline bool has_nan(Box box)
{
    return is_nan(box.x1) || is_nan(box.y1) || is_nan(box.x2) || is_nan(box.y2);
}

// ---- The candidates port.

struct Candidate
{
    bool keep, nan; // to be appended; dropped for a NaN
    Box box;        // model pixels
    float score;
    int label, anchor;
};

// Appends the candidates that the lanes of a warp keep, and counts those dropped for a NaN. The
// whole warp calls, every lane for the same image; lanes count along x. order: any.
template <typename Fields>
__device__ inline void append(const Fields& args, int image, const Candidate& candidate)
{
    const unsigned int lane = threadIdx.x % 32;
    const unsigned int kept = __ballot_sync(0xffffffffu, candidate.keep);
    const unsigned int nans = __ballot_sync(0xffffffffu, candidate.nan);
    if (nans && lane == 0) atomicAdd(&args.candidates_nans[image], __popc(nans));
    if (!kept) return;
    int start = 0;
    if (lane == 0) start = atomicAdd(&args.candidates_count[image], __popc(kept));
    start = __shfl_sync(0xffffffffu, start, 0);
    if (!candidate.keep) return;
    const int row = start + __popc(kept & ((1u << lane) - 1));
    const unsigned long long at = 1ull * image * args.A + row;
    reinterpret_cast<Box*>(args.candidates_boxes)[at] = candidate.box;
    args.candidates_scores[at] = candidate.score;
    args.candidates_classes[at] = candidate.label;
    args.candidates_anchors[at] = candidate.anchor;
}
