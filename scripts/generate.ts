/** Writes what is derived from the schemas: their TypeScript types, their index, and the AsyncAPI document. */
import { writeFileSync } from 'node:fs';
import { compile } from 'json-schema-to-typescript';
import { asyncApiDocument } from './asyncapi.ts';
import { bundleSchemas, readSchemaFiles, type SchemaFile } from './schema-bundle.ts';

const BANNER = '// Generated from the JSON Schemas in this folder by `npm run generate`. Change those instead.\n';

/** Each derived file by its path below `schemas/`. */
export async function derivedFiles(): Promise<Record<string, string>> {
  const files = readSchemaFiles();
  return {
    'types.ts': BANNER + (await types(files)),
    'index.ts': BANNER + index(files),
    'asyncapi.json': `${JSON.stringify(asyncApiDocument(files), null, 2)}\n`,
  };
}

async function types(files: readonly SchemaFile[]): Promise<string> {
  const definitions = bundleSchemas(files, '#/definitions/');
  for (const [name, { examples, ...schema }] of Object.entries(definitions)) definitions[name] = schema;
  const source = await compile({ definitions, additionalProperties: false } as object, '_', {
    bannerComment: '',
    unreachableDefinitions: true,
    // Unknown fields are allowed on the wire but are no part of the type.
    additionalProperties: false,
    style: { singleQuote: true, printWidth: 120 },
  });
  return source
    .replace(/export interface _ \{\}\n/, '')
    .replace(
      /\/\*\*\n \* This interface was referenced by `_`'s JSON-Schema\n \* via the `definition` "\w+"\.\n \*\/\n/g,
      '',
    )
    .replace(/ \*\n \* This interface was referenced by `_`'s JSON-Schema\n \* via the `definition` "\w+"\.\n/g, '');
}

function index(files: readonly SchemaFile[]): string {
  const variable = (name: string) => name.replace(/[:_-](\w)/g, (_, letter: string) => letter.toUpperCase());
  return [
    ...files.map(({ path, name }) => `import ${variable(name)} from './${path}' with { type: 'json' };`),
    '',
    '/** Every schema by the last part of its `$id`: `task_submit`, `event:log`, `common` … */',
    'export const schemas = {',
    ...files.map(({ name }) => `  '${name}': ${variable(name)},`),
    '};',
    '',
  ].join('\n');
}

if (import.meta.main) {
  for (const [path, content] of Object.entries(await derivedFiles())) {
    writeFileSync(new URL(`../schemas/${path}`, import.meta.url), content);
  }
}
