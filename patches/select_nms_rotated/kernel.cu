// Greedy suppression of turned rectangles by ProbIoU (Llerena et al., 2021), then model pixels to
// frame pixels. A rectangle counts as a normal distribution with its own mean and covariance;
// ProbIoU is 1 less the Hellinger distance of two of them.
//
// Bytes, for K candidates and M places an image: reads 48 K, writes 44 M; scratch as select_nms.
#include "../greedy.cuh"
#include "../rectangles.cuh"

constexpr float QUARTER = 1.57079633f; // of a turn

struct ProbIou
{
    struct Item
    {
        float x, y, xx, yy, xy; // mean and covariance
        float root;             // of the covariance's determinant
        int label;
    };

    // ProbIoU > t means that the Bhattacharyya distance is below -ln(1 - (1 - t)^2).
    struct Limit
    {
        float threshold, distance;
    };

    static __device__ Rectangle rectangle(const Args& args, unsigned long long at)
    {
        const unsigned long long image = at / args.A;
        const float* of = args.rectangles + 5 * (image * args.A + args.candidates_anchors[at]);
        return {of[0], of[1], of[2], of[3], of[4]};
    }

    static __device__ Item item(const Args& args, unsigned long long at)
    {
        const Rectangle one = rectangle(args, at);
        const float cosine = cosf(one.angle), sine = sinf(one.angle);
        const float along = one.width * one.width / 12.0f, across = one.height * one.height / 12.0f;
        return {one.x, one.y, along * cosine * cosine + across * sine * sine,
                along * sine * sine + across * cosine * cosine, (along - across) * cosine * sine,
                one.width * one.height / 12.0f, args.candidates_classes[at]};
    }

    static __device__ Limit limit(float threshold)
    {
        const float apart = 1.0f - threshold;
        return {threshold, -logf(1.0f - apart * apart) * 1.0001f + 1e-5f};
    }

    // Of the summed covariances.
    static __device__ float determinant(const Item& a, const Item& b)
    {
        const float xy = a.xy + b.xy;
        return (a.xx + b.xx) * (a.yy + b.yy) - xy * xy;
    }

    // The part of the distance that comes from the means, times the determinant.
    static __device__ float between_means(const Item& a, const Item& b)
    {
        const float x = a.x - b.x, y = a.y - b.y;
        const float ahead = (a.yy + b.yy) * (x * x) + (a.xx + b.xx) * (y * y);
        return (ahead - 2.0f * (a.xy + b.xy) * (x * y)) * 0.25f;
    }

    static __device__ bool could(const Item& better, const Item& one, const Limit& limit)
    {
        return between_means(better, one) < limit.distance * determinant(better, one);
    }

    static __device__ bool suppresses(const Item& better, const Item& one, const Limit& limit)
    {
        const float both = determinant(better, one);
        const float shapes = 0.5f * logf(both / (4.0f * better.root * one.root));
        const float distance = fmaxf(between_means(better, one) / both + shapes, 0.0f);
        return 1.0f - sqrtf(-expm1f(-distance)) > limit.threshold;
    }

    // The width in frame pixels turns where the scales differ; the height stays upright to it.
    static __device__ void write(const Args& args, int image, int row, unsigned long long at)
    {
        const Rectangle one = rectangle(args, at);
        const float* geometry = args.geometry + 6ull * image;
        const float cosine = cosf(one.angle), sine = sinf(one.angle);
        const float x = cosine * geometry[0], y = sine * geometry[1];
        const float u = sine * geometry[0], v = cosine * geometry[1];
        const float width = one.width * sqrtf(x * x + y * y);
        const float height = one.height * sqrtf(u * u + v * v);
        const float angle = atan2f(y, x), turns = floorf(angle / QUARTER);
        const bool swapped = turns == 1.0f || turns == -1.0f;
        float* rotated = args.rotated + 5ull * (1ull * image * args.M + row);
        rotated[0] = (one.x - geometry[2]) * geometry[0];
        rotated[1] = (one.y - geometry[3]) * geometry[1];
        rotated[2] = swapped ? height : width;
        rotated[3] = swapped ? width : height;
        rotated[4] = angle - turns * QUARTER;
    }

    static __device__ void clear(const Args& args, int image, int row)
    {
        float* rotated = args.rotated + 5ull * (1ull * image * args.M + row);
        for (int i = 0; i < 5; ++i) rotated[i] = 0.0f;
    }
};

extern "C" __global__ void __launch_bounds__(1024, 1) select_nms_rotated(const Args args)
{
    select_greedily<ProbIou>(args);
}
