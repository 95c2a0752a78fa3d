import { amqpFixture } from './amqp-harness.ts';
import { memoryFixture } from './memory-harness.ts';
import { sqliteFixture } from './sqlite-harness.ts';
import type { TransportFixture } from './transport-fixture.ts';

/** Every transport. A new one is a line here. */
export const transportFixtures: readonly TransportFixture[] = [
  memoryFixture(),
  sqliteFixture(),
  amqpFixture('quorum'),
  amqpFixture('classic'),
];
