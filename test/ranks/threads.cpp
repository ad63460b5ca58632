//===- threads.cpp: a training by ranks that are threads of this process ------===//
// Takes:    a bundle with train_step on tokens and targets (u8 and i64, rows of 128), the number of ranks, rows of a
//           step, steps, a seed, files of all rows.
// Gives:    the states behind each other in a file, and their names and bytes in FILE.txt: what astra-train has after
//           as many steps.
// Keeps:    the order of rows of astra-train (Shuffle.h). Each rank has a runtime, a device and a session of its own.
#include "Shuffle.h"
#include <astra/ranks.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

constexpr int64_t kRow = 128;

void must(astra_status status, const astra_diag &diag) {
  if (!status) return;
  std::fprintf(stderr, "%s: %s\n", astra_status_name(status), diag.text);
  std::exit(1);
}

std::vector<char> bytesOf(const char *path) {
  std::vector<char> out;
  FILE *f = std::fopen(path, "rb");
  if (!f) std::perror(path), std::exit(1);
  char block[65536];
  for (size_t n; (n = std::fread(block, 1, sizeof block, f)) > 0;) out.insert(out.end(), block, block + n);
  std::fclose(f);
  return out;
}

struct Training {
  const char *bundle, *out;
  int64_t rows, steps;
  uint32_t seed;
  std::vector<char> token, target;
};

void run(const Training &t, astra_ranks *ranks) {
  astra_diag diag = ASTRA_INIT(astra_diag);
  astra_runtime *runtime;
  astra_device *device;
  astra_bundle *bundle;
  astra_mesh *mesh;
  astra_loaded *loaded;
  astra_session *session;
  astra_stream *stream;
  must(astra_runtime_init(&runtime, nullptr, &diag), diag);
  must(astra_device_init(&device, runtime, "cpu", nullptr, &diag), diag);
  must(astra_bundle_init_file(&bundle, runtime, t.bundle, nullptr, &diag), diag);
  must(astra_mesh_init(&mesh, ranks, runtime, bundle, &diag), diag);
  must(astra_loaded_init(&loaded, bundle, &device, 1, &diag), diag);
  int64_t local = astra_mesh_local_shards(mesh);
  must(astra_session_init(&session, loaded, nullptr, &diag), diag);
  must(astra_stream_init(&stream, device, &diag), diag);
  const astra_entry *entry;
  must(astra_bundle_find_entry(bundle, "train_step", &entry, &diag), diag);

  int64_t mine = t.rows / astra_mesh_shards(mesh) * local, shape[] = {local, mine / local, kRow},
          whole[] = {t.rows, kRow};
  std::vector<uint8_t> token(size_t(t.rows * kRow)), tokenPart(size_t(mine * kRow));
  std::vector<int64_t> target(size_t(t.rows * kRow)), targetPart(size_t(mine * kRow));
  float loss;
  double rate;
  astra_tensor in[2] = {ASTRA_INIT(astra_tensor), ASTRA_INIT(astra_tensor)};
  astra_tensor out[2] = {ASTRA_INIT(astra_tensor), ASTRA_INIT(astra_tensor)};
  in[0].data = tokenPart.data(), in[0].data_bytes = tokenPart.size(), in[0].dtype = ASTRA_U8;
  in[1].data = targetPart.data(), in[1].data_bytes = targetPart.size() * sizeof(int64_t), in[1].dtype = ASTRA_I64;
  for (astra_tensor &x : in) x.ndim = 3, x.shape = shape;
  out[0].data = &loss, out[0].data_bytes = sizeof loss, out[0].dtype = ASTRA_F32;
  out[1].data = &rate, out[1].data_bytes = sizeof rate, out[1].dtype = ASTRA_F64;
  std::vector<uint32_t> order(t.token.size() / kRow);
  astra::tool::shuffle(t.seed, 1, order);
  for (int64_t step = 0; step < t.steps; step++) {
    for (int64_t r = 0; r < t.rows; r++) {
      size_t row = order[size_t(step * t.rows + r)];
      std::memcpy(token.data() + r * kRow, t.token.data() + row * kRow, kRow);
      std::memcpy(target.data() + r * kRow, t.target.data() + row * kRow * sizeof(int64_t), kRow * sizeof(int64_t));
    }
    must(astra_mesh_take(mesh, ASTRA_MESH_INPUT, "train_step", "token", 1, 2, whole, token.data(), in[0].data,
                         in[0].data_bytes, &diag),
         diag);
    must(astra_mesh_take(mesh, ASTRA_MESH_INPUT, "train_step", "target", sizeof(int64_t), 2, whole, target.data(),
                         in[1].data, in[1].data_bytes, &diag),
         diag);
    astra_call call = ASTRA_INIT(astra_call);
    call.entry = entry, call.inputs = in, call.num_inputs = 2, call.outputs = out, call.num_outputs = 2;
    astra_promise *promise = nullptr;
    must(astra_session_submit(session, stream, &call, &promise, &diag), diag);
    must(astra_promise_wait(promise, &diag), diag);
    must(astra_promise_free(&promise), diag);
  }
  if (astra_ranks_rank(ranks) == 0) { // no state of this bundle is cut
    FILE *data = std::fopen(t.out, "wb"), *names = std::fopen((std::string(t.out) + ".txt").c_str(), "w");
    if (!data || !names) std::perror(t.out), std::exit(1);
    astra_bundle_info info = ASTRA_INIT(astra_bundle_info);
    must(astra_bundle_get_info(bundle, &info), diag);
    for (uint32_t i = 0; i < info.num_states; i++) {
      astra_tensor_info state = ASTRA_INIT(astra_tensor_info);
      must(astra_bundle_get_state(bundle, i, &state), diag);
      const void *bytes;
      uint64_t count;
      must(astra_session_lease_state(session, state.name, &bytes, &count, &diag), diag);
      std::fwrite(bytes, 1, count, data);
      std::fprintf(names, "%s\t%llu\n", state.name, static_cast<unsigned long long>(count));
      must(astra_session_return_state(session, state.name, &diag), diag);
    }
    std::fclose(data), std::fclose(names);
  }
  must(astra_ranks_barrier(ranks, &diag), diag);
  astra_stream_free(&stream);
  astra_session_free(&session);
  astra_loaded_free(&loaded);
  astra_mesh_free(&mesh);
  astra_bundle_free(&bundle);
  astra_device_free(&device);
  astra_runtime_free(&runtime);
  astra_ranks_free(&ranks);
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 9)
    return std::fprintf(stderr, "usage: ranks-threads BUNDLE RANKS ROWS STEPS SEED TOKENS TARGETS OUT\n"), 2;
  int count = std::atoi(argv[2]);
  Training t{argv[1],          argv[8],         std::atoll(argv[3]), std::atoll(argv[4]), uint32_t(std::atoll(argv[5])),
             bytesOf(argv[6]), bytesOf(argv[7])};
  std::vector<astra_ranks *> ranks(static_cast<size_t>(count));
  astra_diag diag = ASTRA_INIT(astra_diag);
  astra_ranks_options options = ASTRA_INIT(astra_ranks_options);
  options.timeout = 600000;
  must(astra_ranks_init_threads(ranks.data(), count, &options, &diag), diag);
  std::vector<std::thread> threads;
  for (astra_ranks *r : ranks) threads.emplace_back([&t, r] { run(t, r); });
  for (std::thread &thread : threads) thread.join();
  return 0;
}
