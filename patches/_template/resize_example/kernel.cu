// Frames of any size, uint8 [height, width, 3], to the model's input [N, 3, H, W]. A thread has a
// pixel of the input in all its channels.

extern "C" __global__ void resize_example(const __grid_constant__ Args args)
{
    const int image = blockIdx.z;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (y >= args.H || x >= args.W) return; // the last blocks have threads past the end

    const int* size = args.frame_sizes + 3ull * image; // height px, width px, bytes from row to row
    const int height = size[0], width = size[1];
    const bool unused = height == 0; // a place of the batch that holds no frame

    // Whole numbers: every executor takes the same pixel.
    const int from_y = 1ll * y * height / args.H, from_x = 1ll * x * width / args.W;
    const unsigned char* pixel = args.frame_images[image] + 1ll * from_y * size[2] + 3ll * from_x;
    const bool frame_is_bgr = args.frame_layout == args.frame_layout_bgr;
    const bool swapped = frame_is_bgr != (args.color == args.color_bgr);
    for (int channel = 0; channel < 3; ++channel) {
        const float grey = unused ? 0.0f : pixel[swapped ? 2 - channel : channel];
        store(args.image + ((3ull * image + channel) * args.H + y) * args.W + x, grey * args.scale);
    }

    if (x > 0 || y > 0) return;
    float* row = args.geometry + 6ull * image; // model pixels to frame pixels
    row[0] = unused ? 1.0f : float(width) / args.W;
    row[1] = unused ? 1.0f : float(height) / args.H;
    row[2] = row[3] = 0.0f;
    row[4] = width;
    row[5] = height;
}
