import { describe, expect, it, vi } from 'vitest';
import { delay, systemClock } from '../../shared/clock.ts';
import { ManualClock } from '../../testing/manual-clock.ts';

describe('clocks', () => {
  it('the system clock does not fire a 72-hour timer at once, as Node does beyond 2^31 ms', () => {
    vi.useFakeTimers();
    try {
      const fired = vi.fn();
      systemClock.setTimeout(fired, 2 ** 31 + 5000);
      vi.advanceTimersByTime(2 ** 31 + 4999);
      expect(fired).not.toHaveBeenCalled();
      vi.advanceTimersByTime(1);
      expect(fired).toHaveBeenCalledOnce();
    } finally {
      vi.useRealTimers();
    }
  });

  it('the system clock forgets a cleared timer in its second stretch too', () => {
    vi.useFakeTimers();
    try {
      const fired = vi.fn();
      const timer = systemClock.setTimeout(fired, 2 ** 32);
      vi.advanceTimersByTime(2 ** 31 + 1000);
      systemClock.clearTimeout(timer);
      vi.advanceTimersByTime(2 ** 32);
      expect(fired).not.toHaveBeenCalled();
    } finally {
      vi.useRealTimers();
    }
  });

  it('the manual clock fires in order of time, also what is set meanwhile', () => {
    const clock = new ManualClock(0);
    const seen: [string, number][] = [];
    const note = (name: string) => () => seen.push([name, clock.now()]);
    clock.setTimeout(note('late'), 200);
    clock.setTimeout(() => clock.setTimeout(note('inner'), 50), 100);
    clock.clearTimeout(clock.setTimeout(note('cleared'), 10));
    clock.advance(1000);
    expect([seen, clock.now()]).toEqual([
      [
        ['inner', 150],
        ['late', 200],
      ],
      1000,
    ]);
  });

  it('a delay ends with its time or with its signal', async () => {
    const clock = new ManualClock();
    const waiting = delay(clock, 1000);
    clock.advance(1000);
    await waiting;
    const abort = new AbortController();
    const given = delay(clock, 1000, abort.signal);
    abort.abort(new Error('enough'));
    await expect(given).rejects.toThrow('enough');
  });
});
