// ---- counter-based random numbers: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011) ----
struct RandomWords { u32 word[4]; };
FN u32 rotated(u32 word, int distance) { return word << distance | word >> (32 - distance); }
FN u64 joined(u32 low, u32 high) { return (u64)high << 32 | low; }

// Threefry-2x32, 20 rounds.
FN RandomWords threefry(u64 key, u64 counter) {
  const int rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  const u32 low = (u32)key, high = (u32)(key >> 32), schedule[3] = {low, high, low ^ high ^ 0x1bd11bdau};
  u32 x = (u32)counter + low, y = (u32)(counter >> 32) + high;
  for (int step = 0; step < 5; ++step) {
    for (int round = 0; round < 4; ++round) {
      x += y;
      y = rotated(y, rotations[step % 2 * 4 + round]) ^ x;
    }
    x += schedule[(step + 1) % 3];
    y += schedule[(step + 2) % 3] + (u32)(step + 1);
  }
  const RandomWords words = {{x, y, 0, 0}};
  return words;
}
// Philox-4x32, 10 rounds, at a 128-bit counter.
FN RandomWords philox(u64 key, u64 low, u64 high) {
  u32 key_low = (u32)key, key_high = (u32)(key >> 32);
  u32 x0 = (u32)low, x1 = (u32)(low >> 32), x2 = (u32)high, x3 = (u32)(high >> 32);
  for (int round = 0; round < 10; ++round) {
    const u64 first = (u64)x0 * 0xd2511f53u, second = (u64)x2 * 0xcd9e8d57u;
    x0 = (u32)(second >> 32) ^ x1 ^ key_low;
    x2 = (u32)(first >> 32) ^ x3 ^ key_high;
    x1 = (u32)second;
    x3 = (u32)first;
    key_low += 0x9e3779b9u;
    key_high += 0xbb67ae85u;
  }
  const RandomWords words = {{x0, x1, x2, x3}};
  return words;
}
