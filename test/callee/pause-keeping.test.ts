import { describe, expect, it } from 'vitest';
import { CallerPause } from '../../callee/caller-pause.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { watched } from '../support/pausing.ts';

/** Whatever was ready to happen has happened. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

function pausing() {
  const clock = new ManualClock();
  const stop = new AbortController();
  return { clock, stop, pause: new CallerPause(clock, stop.signal) };
}

describe('a pause the caller asked for', () => {
  it('holds the work again when it was asked for anew before the work woke up', async () => {
    const { pause } = pausing();
    pause.keep();
    const waiting = watched(pause.safePoint());
    pause.end();
    pause.keep();
    await turn();
    expect(waiting.isDone()).toBe(false);
    pause.end();
    await waiting.done;
  });

  it('is made once, by the safe point or by the time, whichever comes first', async () => {
    const { clock, pause } = pausing();
    let made = 0;
    pause.drain(1000, async () => {
      made++;
      pause.keep();
    });
    const waiting = watched(pause.safePoint());
    clock.advance(1000);
    await turn();
    expect([made, waiting.isDone(), pause.isWanted]).toEqual([1, false, false]);
    pause.end();
    await waiting.done;
  });

  it('never holds work that must stop', async () => {
    const { clock, stop, pause } = pausing();
    stop.abort(new Error('Stop'));
    pause.keep();
    await expect(pause.safePoint()).rejects.toThrow('Stop');
    pause.drain(1000, () => Promise.reject(new Error('Nobody wants it any more')));
    clock.advance(1000);
    await expect(pause.safePoint()).rejects.toThrow('Stop');
  });

  it('lets nothing pass that waited when the session ended', async () => {
    const { pause } = pausing();
    pause.keep();
    const waiting = pause.safePoint();
    pause.close();
    await expect(waiting).rejects.toMatchObject({ code: 'session_closed' });
  });
});
