import { configDefaults, defineConfig } from 'vitest/config';
import { SummaryReporter } from './test/support/reporter.ts';

/** All files share one RabbitMQ and one MongoDB. These stop or restart it, or need the machine for themselves. */
const ALONE = [
  'test/contract/**/*.test.ts',
  'test/docker/**/*.test.ts',
  'test/shared/foreign-schema/**/*.test.ts',
  'test/shared/transport/amqp/**/*.test.ts',
  'test/support/**/*.test.ts',
  'test/callee/{broker-loss,guard-emergency,telemetry}.test.ts',
  'test/caller/link-loss.test.ts',
];

const globalSetup = ['test/support/services/global-setup.ts'];

export default defineConfig({
  test: {
    reporters: ['default', new SummaryReporter()],
    testTimeout: 30_000,
    hookTimeout: 120_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'together',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...ALONE],
          globalSetup,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: { name: 'alone', include: ALONE, globalSetup, fileParallelism: false, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
