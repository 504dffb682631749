// Numbers that a seed fixes (mulberry32), and choices made by them.

export class Random {
  constructor(seed) { this.seed = seed | 0; }

  /** At least 0, less than 1. */
  next() {
    this.seed = (this.seed + 0x6d2b79f5) | 0;
    let t = Math.imul(this.seed ^ (this.seed >>> 15), 1 | this.seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  below(n) { return Math.floor(this.next() * n); }
  between(from, to) { return from + this.below(to - from + 1); }
  of(list) { return list[this.below(list.length)]; }

  shuffled(list) {
    const copy = [...list];
    for (let i = copy.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      [copy[i], copy[j]] = [copy[j], copy[i]];
    }
    return copy;
  }

  /** A generator of its own, for a part whose number of draws should not change the others'. */
  child() { return new Random(this.below(2 ** 31)); }
}
