import { readFileSync } from 'node:fs';
import { Parser } from '@asyncapi/parser';
import { describe, expect, it } from 'vitest';
import { derivedFiles } from '../../scripts/generate.ts';
import { readSchemaFiles } from '../../scripts/schema-bundle.ts';
import { EVENT_TYPES, MESSAGE_TYPES, type SchemaName, schemaFault } from '../../shared/messages/validators.ts';
import { verifies } from '../support/verifies.ts';

const files = readSchemaFiles();
const read = (path: string) => readFileSync(new URL(`../../schemas/${path}`, import.meta.url), 'utf8');

describe('schemas', () => {
  verifies('HCP-001', 'there is one schema per message, event and object of the protocol and of our extensions', () => {
    const names = files.map(({ name }) => name).sort();
    expect(names).toEqual(
      [
        ...['abort', 'capability', 'checkpoint', 'common', 'envelope', 'event', 'safety_envelope', 'session_token'],
        ...['task_accepted', 'task_completed', 'task_failed', 'task_rejected', 'task_submit'],
        ...['event:checkpoint_created', 'event:error', 'event:intermediate_result', 'event:log', 'event:progress'],
        ...['event:session_closed', 'event:session_created', 'event:state_changed', 'event:warning'],
        ...['x-replay', 'x-status', 'event:x-replay-unavailable', 'event:x-status'],
        ...['x-pause', 'x-resume', 'event:x-approval-pending'],
      ].sort(),
    );
    expect(names).toEqual(expect.arrayContaining([...MESSAGE_TYPES, ...EVENT_TYPES.map((type) => `event:${type}`)]));
  });

  it.each(files)('$path is JSON Schema 2020-12 with a urn, a title and a description', ({ path, name, schema }) => {
    expect(schema.$schema).toBe('https://json-schema.org/draft/2020-12/schema');
    expect(schema.$id).toBe(`urn:hcp:1.0:${name}`);
    expect(path).toBe(`${name.replace('event:', 'events/')}.schema.json`);
    expect(schema.title).toMatch(/^[A-Z]\w+$/);
    expect(schema.description).toMatch(/\.$/);
  });

  it.each(files.filter(({ name }) => name !== 'common'))('every property of $path is described', ({ schema }) => {
    const described = (node: unknown): boolean => {
      if (typeof node !== 'object' || node === null) return true;
      const { properties = {}, $defs = {} } = node as { properties?: object; $defs?: object };
      const own = Object.values(properties).every((part) => '$ref' in part || typeof part.description === 'string');
      return own && [...Object.values(properties), ...Object.values($defs)].every(described);
    };
    expect(described(schema)).toBe(true);
  });

  it.each(files.filter(({ name }) => name !== 'common'))('every example of $path is valid', ({ name, schema }) => {
    const examples = schema.examples as readonly unknown[];
    expect(examples.length).toBeGreaterThan(0);
    // The name was read from the schema's own $id.
    for (const example of examples) expect(schemaFault(name as SchemaName, example)).toBeUndefined();
  });

  it('types, index and AsyncAPI document are what `npm run generate` writes', async () => {
    for (const [path, content] of Object.entries(await derivedFiles())) expect(read(path), path).toBe(content);
  });

  it("the AsyncAPI document passes AsyncAPI's own validator", async () => {
    const { document, diagnostics } = await new Parser().parse(read('asyncapi.json'));
    expect(diagnostics.filter(({ severity }) => severity <= 1)).toEqual([]);
    const channels = document?.allChannels().all() ?? [];
    expect(channels.map((channel) => channel.address()).sort()).toEqual([
      '{callee_id}',
      '{caller_id}.{session_id}.{type}',
    ]);
    expect(document?.allMessages().all().length).toBe(11);
  });

  it('AsyncAPI would notice a broken document', async () => {
    const broken = JSON.parse(read('asyncapi.json'));
    broken.channels.commands.messages.abort.$ref = '#/components/messages/nothing';
    const { diagnostics } = await new Parser().parse(JSON.stringify(broken));
    expect(diagnostics.some(({ severity }) => severity === 0)).toBe(true);
  });
});
