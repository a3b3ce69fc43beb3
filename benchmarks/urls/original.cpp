// Measures url_compress as src/measure.rs measures the others: FILE ROUNDS, prints JSON.
// It is built by benchmarks/url from a checkout that the user has.

#include <stddef.h>
extern "C" {
#include "url_coder.h"
}
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

using Clock = std::chrono::steady_clock;

static const size_t CHUNK = 100;
static char packed[4 * URL_COMPRESS_BUFSIZE], back[4 * URL_COMPRESS_BUFSIZE];

static double since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s FILE ROUNDS\n", argv[0]);
    return 2;
  }
  std::ifstream file(argv[1]);
  const int rounds = atoi(argv[2]);
  std::vector<std::pair<std::string, std::string>> all;
  size_t failed = 0, changed = 0, in = 0, out = 0;
  double mean = 0;
  for (std::string url; std::getline(file, url);) {
    if (url.empty()) continue;
    int length = url_compress(url.data(), url.size(), packed);
    if (length < 0) {
      failed++;
      continue;
    }
    int again = url_decompress(packed, length, back);
    changed += again < 0 || url != std::string(back, again);
    in += url.size();
    out += length;
    mean += double(length) / url.size();
    all.emplace_back(url, std::string(packed, length));
  }
  double pack = 0, unpack = 0;
  for (size_t from = 0; from < all.size(); from += CHUNK) {
    const size_t to = std::min(from + CHUNK, all.size());
    double packs = 1e9, unpacks = 1e9;
    for (int round = 0; round < rounds; round++) {
      auto begun = Clock::now();
      for (size_t at = from; at < to; at++)
        url_compress(all[at].first.data(), all[at].first.size(), packed);
      packs = std::min(packs, since(begun));
      begun = Clock::now();
      for (size_t at = from; at < to; at++)
        url_decompress(all[at].second.data(), all[at].second.size(), back);
      unpacks = std::min(unpacks, since(begun));
    }
    pack += packs;
    unpack += unpacks;
  }
  const size_t urls = all.size();
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  size_t inversions = 0;
  for (size_t at = 1; at < all.size(); at++) inversions += all[at - 1].second >= all[at].second;
  printf("{\"urls\": %zu, \"failed\": %zu, \"changed\": %zu, \"total\": %.6f, \"mean\": %.6f, "
         "\"inversions\": %zu, \"packed_per_s\": %.0f, \"unpacked_per_s\": %.0f}\n",
         urls, failed, changed, double(out) / in, mean / urls, inversions, urls / pack, urls / unpack);
}
