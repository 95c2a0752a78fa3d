import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TransportHarness, transportContract } from '../../testing/transport-contract/index.ts';
import { transportFixtures } from '../support/transport-fixtures.ts';
import { verifies } from '../support/verifies.ts';

for (const fixture of transportFixtures) {
  describe(`transport contract: ${fixture.adapter}`, () => {
    const { unavailable } = fixture;
    if (unavailable !== undefined) return it('needs its broker', ({ skip }) => skip(unavailable));

    let started: (TransportHarness & AsyncDisposable) | undefined;
    beforeAll(async () => {
      started = await fixture.start();
    });
    afterAll(() => started?.[Symbol.asyncDispose]());

    // The cases are registered before their harness can be started.
    const harness = (): TransportHarness => {
      if (started === undefined) throw new Error(`The harness of ${fixture.adapter} did not start`);
      return started;
    };
    const late: TransportHarness = {
      adapter: fixture.adapter,
      open: (options) => harness().open(options),
      get otherLogin() {
        return harness().otherLogin;
      },
      get faults() {
        return harness().faults;
      },
    };
    for (const { name, verifies: ids, timeLimitMs, run } of transportContract(late)) {
      const excuse = fixture.cannotKeep?.[name];
      if (excuse !== undefined) it(`cannot keep "${name}": ${excuse}`, () => expect(run()).rejects.toThrow());
      else if (ids.length === 0) it(name, run, timeLimitMs);
      else verifies(ids, name, run, timeLimitMs);
    }
  });
}
