import { describe, expect, it } from 'vitest';
import {
  bindingSteps,
  deadLetterQueue,
  eventQueue,
  instanceQueue,
  partitionQueue,
} from '../../../shared/transport/topology.ts';

describe('a partition of the event queue', () => {
  it('is the event queue by another name and binding', () => {
    const { name, bindings, ...settings } = partitionQueue('alpha', 3, { profile: 'spec', maxLength: 7 });
    expect(eventQueue('alpha', { profile: 'spec', maxLength: 7 })).toMatchObject(settings);
    expect(name).toBe('hcp.evt.alpha.p3');
    expect(bindings).toEqual([
      { exchange: 'hcp.hash.alpha', hashedFrom: { exchange: 'hcp.events', routingKey: 'alpha.#' } },
    ]);
  });

  it('is bound to its exchange before that one gets messages', () => {
    expect(bindingSteps(partitionQueue('alpha', 0))).toEqual([
      { source: 'hcp.hash.alpha', routingKey: '1', destination: 'hcp.evt.alpha.p0' },
      { source: 'hcp.events', routingKey: 'alpha.#', destination: 'hcp.hash.alpha' },
    ]);
  });

  it.each([-1, 0.5, Number.NaN, 2 ** 53])('has no number %d', (index) => {
    expect(() => partitionQueue('alpha', index)).toThrow(new TypeError('index must be 0 or a positive integer'));
  });

  it('shares the dead-letter queue of its caller, and no other queue does', () => {
    expect(deadLetterQueue(partitionQueue('alpha', 12))).toEqual(deadLetterQueue(eventQueue('alpha')));
    expect(deadLetterQueue(eventQueue('p1')).name).toBe('hcp.dead.evt.p1');
    expect(deadLetterQueue(instanceQueue('lab', 'p1')).name).toBe('hcp.dead.cmd.lab.p1');
  });
});
