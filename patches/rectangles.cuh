// Rectangles that are turned: centre x y, width, height, and the angle from the x axis to the width,
// clockwise, in radians.

struct Rectangle
{
    float x, y, width, height, angle;
};

// The upright box around a rectangle.
__device__ inline Box box_around(Rectangle one)
{
    const float cosine = fabsf(cosf(one.angle)), sine = fabsf(sinf(one.angle));
    return box_around(one.x, one.y, one.width * cosine + one.height * sine,
                      one.width * sine + one.height * cosine);
}
