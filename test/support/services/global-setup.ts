import type { TestProject } from 'vitest/node';
import type { ServerDescription, ServicesDescription } from './description.ts';
import { type StartedServices, startServices } from './start.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    services: ServicesDescription;
  }
}

/** Every project of the run has a copy of this module: what they share is kept outside of it. */
const shared = globalThis as { hcpServices?: { readonly started: Promise<StartedServices>; users: number } };

/** Vitest's `globalSetup`: one RabbitMQ and one MongoDB for the whole run, however many projects it has. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  shared.hcpServices ??= { started: start(), users: 0 };
  const run = shared.hcpServices;
  run.users++;
  const services = await run.started;
  project.provide('services', services.description);
  return async () => {
    if (--run.users === 0) await services[Symbol.asyncDispose]();
  };
}

async function start(): Promise<StartedServices> {
  const services = await startServices({ rabbitmq: true, mongodb: true });
  const { rabbitmq, mongodb } = services.description;
  process.stdout.write(`services: ${summary('RabbitMQ', rabbitmq)}\n`);
  process.stdout.write(`services: ${summary('MongoDB', mongodb)}\n`);
  const missing = [rabbitmq, mongodb].filter((server) => !server.available);
  if (missing.length > 0 && (process.env.CI || process.env.HCP_REQUIRE_SERVICES)) {
    await services[Symbol.asyncDispose]();
    throw new Error(`Servers are required here, but: ${missing.map((server) => server.reason).join('\n')}`);
  }
  return services;
}

function summary(name: string, server: ServerDescription): string {
  return server.available
    ? `${name} ${server.version} (${server.source})`
    : `no ${name}, its tests are skipped: ${server.reason}`;
}
