import { defineConfig } from 'vitest/config';
import { SummaryReporter } from './test/support/reporter.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/services/global-setup.ts'],
    reporters: ['default', new SummaryReporter()],
    // The files share one RabbitMQ and one MongoDB, and some of them stop it.
    fileParallelism: false,
    testTimeout: 30_000,
    hookTimeout: 120_000,
  },
});
