## Blocks of 32 x 32 recurrence bits turned: from words along diagonals to words along rows, and on to words along columns.

// Bit c of word r becomes bit r of word c. Five rounds that swap ever smaller off-diagonal blocks (Hacker's Delight, 7-3).
void turn(uint* restrict a) {
<% mask = 0x0000ffff %>
%for j in (16, 8, 4, 2, 1):
%for p in range(32):
%if not p & j:
  {
    const uint t = ((a[${p}] >> ${j}) ^ a[${p + j}]) & ${hex(mask)}u;
    a[${p}] ^= t << ${j};
    a[${p + j}] ^= t;
  }
%endif
%endfor
<% mask = mask ^ (mask << (j // 2)) & 0xffffffff if j > 1 else mask %>
%endfor
}

void load32(uint* restrict a, global const uint* restrict from) {
%for p in range(0, 32, 4):
  {
    const uint4 v = *(global const uint4*)(from + ${p});
    a[${p}] = v.x; a[${p + 1}] = v.y; a[${p + 2}] = v.z; a[${p + 3}] = v.w;
  }
%endfor
}

void store32(const uint* restrict a, global uint* restrict to) {
%for p in range(0, 32, 4):
  *(global uint4*)(to + ${p}) = (uint4)(a[${p}], a[${p + 1}], a[${p + 2}], a[${p + 3}]);
%endfor
}

// bits: [word of 32 rows][diagonal] -> rows: [word of 32 diagonals][row]. One block a work-item: (block of diagonals,
// block of rows) = global ids.
kernel void turn_to_rows(global const uint* restrict bits, global uint* restrict rows, const int n_words, const int n_diagonals,
                         const ulong bits_begin) {
  const int q = get_global_id(0), r = get_global_id(1);
  if (q >= n_diagonals / 32 || r >= n_words) return;
  uint a[32];
  load32(a, bits + bits_begin + (size_t)r * n_diagonals + 32 * q);
  turn(a);
  store32(a, rows + ((size_t)q * n_words + r) * 32);
}

// rows -> columns: [word of 32 rows][column], columns counted from i0 + k0. Row i = 32 r + b holds column 32 c + t at
// diagonal 32 (c - r) + t - b: b bits further on. own_diagonal: the block of diagonals that begins with the main one, which
// the rows keep to themselves where the matrix is symmetric; -1 otherwise.
kernel void turn_to_columns(global const uint* restrict rows, global uint* restrict columns, const int n_words,
                            const int n_diagonals, const int own_diagonal) {
  const int c = get_global_id(0), r = get_global_id(1), blocks = n_diagonals / 32, q = c - r;
  if (r >= n_words || q < 0 || q > blocks) return;
  uint a[32], before[32];
%for p in range(32):
  a[${p}] = 0; before[${p}] = 0;
%endfor
  if (q < blocks) load32(a, rows + ((size_t)q * n_words + r) * 32);
  if (q > 0) load32(before, rows + ((size_t)(q - 1) * n_words + r) * 32);
%for b in range(1, 32):
  a[${b}] = a[${b}] << ${b} | before[${b}] >> ${32 - b};
%endfor
  if (q == own_diagonal) {
%for b in range(32):
    a[${b}] &= ~(1u << ${b});
%endfor
  }
  turn(a);
  store32(a, columns + (size_t)r * (n_diagonals + 32 * n_words) + 32 * c);
}
