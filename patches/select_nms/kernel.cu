// Greedy non-maximum suppression by IoU, or by IoU less the distance of the centres (DIoU), then
// model pixels to frame pixels. The IoU is torchvision's: no + 1, float, rounded step by step; an
// empty union gives no overlap.
//
// Bytes, for K candidates and M places an image: reads 28 K, writes 24 M. Scratch: 16 bytes a
// candidate for the order, 1 bit (stored as 2) for the verdict. The floor is not memory but
// K * (kept boxes) overlaps, spread over the GPU.
#include "../greedy.cuh"

struct Overlaps
{
    struct Item
    {
        Box box;
        float area;
        int label;
    };

    // IoU > t means that more than t / (1 + t) of the areas is common; `below` is two millionths
    // less, so that the roundings of the division cannot matter.
    struct Limit
    {
        float threshold, below;
    };

    static __device__ Item item(const Args& args, unsigned long long at)
    {
        const Box box = reinterpret_cast<const Box*>(args.candidates_boxes)[at];
        return {box, area_of(box), args.candidates_classes[at]};
    }

    static __device__ Limit limit(float threshold)
    {
        return {threshold, threshold / (1.0f + threshold) * 0.999998f};
    }

    static __device__ bool could(const Item& better, const Item& one, const Limit& limit)
    {
        return common_area(better.box, one.box) > (better.area + one.area) * limit.below;
    }

    static __device__ bool suppresses(const Item& better, const Item& one, const Limit& limit)
    {
        const Box a = better.box, b = one.box;
        const float common = common_area(a, b);
        const float overlap = common / (better.area + one.area - common);
        if (Args::metric == Args::metric_iou) return overlap > limit.threshold;
        return overlap - distance(a, b) > limit.threshold;
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

extern "C" __global__ void __launch_bounds__(1024, 1) select_nms(const Args args)
{
    select_greedily<Overlaps>(args);
}
