// A program that runs launches from a file, so that sanitizers can watch them from the start.
//
//   program JOB RESULT
//
// JOB holds 64-bit numbers and then the contents of buffers, each padded to 8 bytes; sanitize.py
// writes it. Every run gets each buffer anew, in an allocation of its own. RESULT gets the bytes of
// the buffers to keep, run after run. What is found goes to stderr, where the sanitizers write too;
// lines that begin with "trtpatch:" say what is being done.
#pragma once

#include <vector>

namespace on_host {

struct Buffer {
    uint64_t bytes, kept, given;  // kept: goes to RESULT; given: has contents in JOB
    const unsigned char* contents;
    unsigned char* memory;
};
struct Pointer {
    int64_t owner, offset, target;  // owner: -1 for Args, else a buffer that holds addresses
};
struct Run {
    uint64_t seed, poison;  // poison: each byte of what is kept

    // Each byte of scratch and of shared memory, which a kernel may copy to what is kept.
    uint64_t other_poison() const { return 256 - poison; }
};

struct Job {
    std::vector<Buffer> buffers;
    std::vector<Pointer> pointers;
    std::vector<Launch> launches;
    std::vector<Run> runs;
    std::vector<unsigned char> args;
};

inline std::vector<uint64_t> read_file(const char* path) {
    FILE* file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) exit(3);
    std::vector<uint64_t> words((size_t)ftell(file) / 8);
    rewind(file);
    if (fread(words.data(), 8, words.size(), file) != words.size()) exit(3);
    fclose(file);
    return words;
}

inline Job read_job(const uint64_t* word) {
    Job job;
    const uint64_t buffers = *word++, pointers = *word++, launches = *word++, runs = *word++;
    job.args.resize(*word++);
    for (uint64_t i = 0; i < buffers; ++i, word += 3)
        job.buffers.push_back({word[0], word[1], word[2], nullptr, nullptr});
    for (uint64_t i = 0; i < pointers; ++i, word += 3)
        job.pointers.push_back({(int64_t)word[0], (int64_t)word[1], (int64_t)word[2]});
    for (uint64_t i = 0; i < launches; ++i, word += 8) {
        Launch launch = {};
        launch.entry = (uint32_t)word[0];
        for (int axis = 0; axis < 3; ++axis) {
            launch.grid[axis] = (uint32_t)word[1 + axis];
            launch.block[axis] = (uint32_t)word[4 + axis];
        }
        launch.shared_bytes = (uint32_t)word[7];
        job.launches.push_back(launch);
    }
    for (uint64_t i = 0; i < runs; ++i, word += 2) job.runs.push_back({word[0], word[1]});
    memcpy(job.args.data(), word, job.args.size());
    word += (job.args.size() + 7) / 8;
    for (Buffer& buffer : job.buffers) {
        if (!buffer.given) continue;
        buffer.contents = reinterpret_cast<const unsigned char*>(word);
        word += (buffer.bytes + 7) / 8;
    }
    return job;
}

inline void place_buffers(Job& job, const Run& run) {
    watch_shared((unsigned char)run.other_poison());
    for (size_t i = 0; i < job.buffers.size(); ++i) {
        Buffer& buffer = job.buffers[i];
        void* memory = nullptr;
        if (posix_memalign(&memory, 256, buffer.bytes)) exit(3);
        buffer.memory = static_cast<unsigned char*>(memory);
        const uint64_t poison = buffer.kept ? run.poison : run.other_poison();
        if (buffer.given)
            memcpy(memory, buffer.contents, buffer.bytes);
        else
            memset(memory, (int)poison, buffer.bytes);
        fprintf(stderr, "trtpatch:buffer %zu %p\n", i, memory);
        if (buffer.kept || !buffer.given)
            watch_buffer(i, buffer.memory, buffer.bytes, (unsigned char)poison, buffer.given);
    }
    for (const Pointer& pointer : job.pointers) {
        unsigned char* owner =
            pointer.owner < 0 ? job.args.data() : job.buffers[(size_t)pointer.owner].memory;
        memcpy(owner + pointer.offset, &job.buffers[(size_t)pointer.target].memory, sizeof(void*));
    }
}

// Gives whether all launches came to their end.
inline bool run_launches(Job& job, const Run& run) {
    for (size_t i = 0; i < job.launches.size(); ++i) {
        Launch launch = job.launches[i];
        launch.args = job.args.data();
        launch.args_bytes = (uint32_t)job.args.size();
        launch.seed = run.seed;
        launch.poison = (uint32_t)run.other_poison();
        fprintf(stderr, "trtpatch:launch %zu\n", i);
        Report report = {};
        trtpatch_launch(&launch, &report);
        if (!report.kind[0]) continue;
        fprintf(stderr, "trtpatch:fault %s\t%s\t%d\t%s\n", report.kind, report.file, report.line,
                report.message);
        return false;
    }
    return true;
}

}  // namespace on_host

int main(int, char** argv) {
    setvbuf(stderr, nullptr, _IONBF, 0);  // in one order with what the sanitizers write
    const std::vector<uint64_t> words = on_host::read_file(argv[1]);
    on_host::Job job = on_host::read_job(words.data());
    FILE* result = fopen(argv[2], "wb");
    if (!result) return 3;
    for (size_t i = 0; i < job.runs.size(); ++i) {
        fprintf(stderr, "trtpatch:run %zu\n", i);
        on_host::place_buffers(job, job.runs[i]);
        const bool ended = on_host::run_launches(job, job.runs[i]);
        for (on_host::Buffer& buffer : job.buffers) {
            if (buffer.kept && ended) fwrite(buffer.memory, 1, buffer.bytes, result);
            free(buffer.memory);
        }
        if (!ended) return 1;
    }
    fclose(result);
    fprintf(stderr, "trtpatch:end\n");
    return 0;
}
