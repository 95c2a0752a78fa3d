import type { TestProject } from 'vitest/node';
import type { ServerDescription, ServicesDescription } from './description.ts';
import { startServices } from './start.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    services: ServicesDescription;
  }
}

/** Vitest's `globalSetup`: one RabbitMQ and one MongoDB for the whole run. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const services = await startServices({ rabbitmq: true, mongodb: true });
  const { rabbitmq, mongodb } = services.description;
  process.stdout.write(`services: ${summary('RabbitMQ', rabbitmq)}\n`);
  process.stdout.write(`services: ${summary('MongoDB', mongodb)}\n`);
  const missing = [rabbitmq, mongodb].filter((server) => !server.available);
  if (missing.length > 0 && (process.env.CI || process.env.HCP_REQUIRE_SERVICES)) {
    await services[Symbol.asyncDispose]();
    throw new Error(`Servers are required here, but: ${missing.map((server) => server.reason).join('\n')}`);
  }
  project.provide('services', services.description);
  return async () => {
    await services[Symbol.asyncDispose]();
  };
}

function summary(name: string, server: ServerDescription): string {
  return server.available
    ? `${name} ${server.version} (${server.source})`
    : `no ${name}, its tests are skipped: ${server.reason}`;
}
