// Greedy non-maximum suppression by IoU, or by IoU less the distance of the centres (DIoU), then
// model pixels to frame pixels. The IoU is torchvision's: no + 1, float, rounded step by step; an
// empty union gives no overlap.
//
// Bytes, for K candidates and M places an image: reads 28 K, writes 24 M. Scratch: 16 bytes a
// candidate for the order, 1 bit (stored as 2) for the verdict. The floor is not memory but
// K * (kept boxes) overlaps, spread over the GPU.
#include "../greedy.cuh"

// Whether a / b > threshold, as the division rounds it; where that is clear, a product tells.
__device__ bool quotient_above(float a, float b, float threshold)
{
    const float product = threshold * b;
    if (product > 0.0f && a > product * 1.000001f) return true;
    if (a < product * 0.999999f) return false;
    return a / b > threshold;
}

struct Overlaps
{
    struct Item
    {
        Box box;
        float area;
        int label;
    };

    static __device__ Item item(const Args& args, unsigned long long at)
    {
        const Box box = reinterpret_cast<const Box*>(args.candidates_boxes)[at];
        return {box, (box.x2 - box.x1) * (box.y2 - box.y1), args.candidates_classes[at]};
    }

    static __device__ bool suppresses(const Item& better, const Item& one, float threshold)
    {
        const Box a = better.box, b = one.box;
        const float width = fminf(a.x2, b.x2) - fmaxf(a.x1, b.x1);
        const float height = fminf(a.y2, b.y2) - fmaxf(a.y1, b.y1);
        if (!(width > 0.0f && height > 0.0f)) return false;
        const float common = width * height, all = better.area + one.area - common;
        if (Args::metric == Args::metric_iou) return quotient_above(common, all, threshold);
        return common / all - distance(a, b) > threshold;
    }

    // Between the centres, as a part of the diagonal of the box around both; each squared.
    static __device__ float distance(Box a, Box b)
    {
        const float x = (b.x1 + b.x2) - (a.x1 + a.x2), y = (b.y1 + b.y2) - (a.y1 + a.y2);
        const float width = fmaxf(a.x2, b.x2) - fminf(a.x1, b.x1);
        const float height = fmaxf(a.y2, b.y2) - fminf(a.y1, b.y1);
        return (x * x + y * y) * 0.25f / (width * width + height * height);
    }

    static __device__ void write(const Args&, int, int, unsigned long long) {}
    static __device__ void clear(const Args&, int, int) {}
};

extern "C" __global__ void select_nms(const Args args) { select_greedily<Overlaps>(args); }
