import { readdirSync, readFileSync } from 'node:fs';

/** A JSON Schema, or a part of one. */
export type Schema = { readonly [keyword: string]: unknown };

export interface SchemaFile {
  /** Path below `schemas/`, e.g. `events/log.schema.json`. */
  readonly path: string;
  /** The last part of its `$id`, e.g. `event:log`. */
  readonly name: string;
  readonly schema: Schema;
}

const FOLDER = new URL('../schemas/', import.meta.url);

export function readSchemaFiles(): SchemaFile[] {
  return readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.schema.json'))
    .sort()
    .map((path) => {
      const schema: Schema = JSON.parse(readFileSync(new URL(path, FOLDER), 'utf8'));
      return { path, name: String(schema.$id).replace('urn:hcp:1.0:', ''), schema };
    });
}

/**
 * All schemas as one flat table by title, references rewritten to `prefix + title`. For tools that know neither
 * `urn:` references nor JSON Schema 2020-12.
 */
export function bundleSchemas(files: readonly SchemaFile[], prefix: string): Record<string, Schema> {
  const targets = new Map<string, Schema>();
  for (const { schema } of files) {
    targets.set(`${schema.$id}`, schema);
    for (const [name, part] of Object.entries((schema.$defs ?? {}) as Record<string, Schema>)) {
      targets.set(`${schema.$id}#/$defs/${name}`, part);
    }
  }
  const bundled: Record<string, Schema> = {};
  for (const [address, schema] of targets) {
    if (address.endsWith(':common')) continue;
    bundled[title(schema)] = rewrite(schema, address.split('#')[0] ?? '') as Schema;
  }
  return bundled;

  function rewrite(node: unknown, base: string): unknown {
    if (Array.isArray(node)) return node.map((item) => rewrite(item, base));
    if (typeof node !== 'object' || node === null) return node;
    const { $ref, $schema, $id, $defs, ...rest } = node as Schema;
    if (typeof $ref !== 'string') {
      // What stands under these two is data, even where it looks like a schema.
      const { examples, const: constant, ...parts } = rest;
      const copy = Object.fromEntries(Object.entries(parts).map(([key, value]) => [key, rewrite(value, base)]));
      return {
        ...copy,
        ...(constant === undefined ? {} : { const: constant }),
        ...(examples === undefined ? {} : { examples }),
      };
    }
    const target = targets.get($ref.startsWith('#') ? base + $ref : $ref);
    if (target === undefined) throw new Error(`${base}: ${$ref} leads nowhere`);
    if (Object.keys(rest).length === 0) return { $ref: prefix + title(target) };
    const { title: _, ...inlined } = rewrite(
      target,
      $ref.startsWith('#') ? base : ($ref.split('#')[0] ?? ''),
    ) as Schema;
    return { ...inlined, ...rest };
  }
}

function title(schema: Schema): string {
  if (typeof schema.title !== 'string')
    throw new Error(`A schema has no title: ${JSON.stringify(schema).slice(0, 80)}`);
  return schema.title;
}
