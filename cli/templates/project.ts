/** What a new project is told about itself. */
export interface Project {
  /** A harness id and the name of the package. */
  readonly id: string;
  /** What package.json asks of npm: a version range, or `file:…`. */
  readonly sdk: string;
}

/** The files of a project by their paths; `{{id}}` stands for its id. */
export interface Template {
  readonly description: string;
  readonly main: string;
  readonly files: Readonly<Record<string, string>>;
}

/** What to write where. */
export function filesOf({ description, main, files }: Template, { id, sdk }: Project): Map<string, string> {
  const manifest = {
    name: id.toLowerCase(),
    version: '0.1.0',
    private: true,
    description,
    type: 'module',
    engines: { node: '>=22.13' },
    scripts: { start: `node ${main}`, test: 'node --test' },
    dependencies: { 'hcp-sdk': sdk },
  };
  const texts = Object.entries(files).map(([path, text]) => [path, text.trimStart().replaceAll('{{id}}', id)] as const);
  return new Map([
    ['package.json', `${JSON.stringify(manifest, null, 2)}\n`],
    ['.gitignore', 'node_modules/\n*.db*\n'],
    ...texts,
  ]);
}
