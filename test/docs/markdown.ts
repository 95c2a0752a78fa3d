import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A fenced block of a document. */
export interface Block {
  /** Relative to the repository: `docs/callee.md`. */
  readonly path: string;
  /** Of the opening fence, from 1. */
  readonly line: number;
  /** What stands behind the opening fence: `ts`, `ts run`, `sh`. */
  readonly info: string;
  readonly lines: readonly string[];
}

export interface Document {
  readonly path: string;
  readonly lines: readonly string[];
  readonly blocks: readonly Block[];
}

/** Everything a reader is sent to: the pages of the root and of docs/, and the README of every other folder. */
export function readDocuments(): Document[] {
  const inside = (folder: string) => readdirSync(join(ROOT, folder)).map((name) => join(folder, name));
  const folders = ['examples', ...inside('examples'), 'docker'].map((folder) => join(folder, 'README.md'));
  const paths = ['README.md', 'CONTRIBUTING.md', ...inside('docs'), ...folders.filter((path) => exists(path))];
  return paths.filter((path) => path.endsWith('.md')).map(readDocument);
}

function readDocument(path: string): Document {
  const lines = readFileSync(join(ROOT, path), 'utf8').split('\n');
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; at++) {
    const [, info] = /^```(.*)$/.exec(lines[at] ?? '') ?? [];
    if (info === undefined) continue;
    const length = lines.slice(at + 1).findIndex((line) => line.startsWith('```'));
    blocks.push({ path, line: at + 1, info: info.trim(), lines: lines.slice(at + 1, at + 1 + length) });
    at += length + 1;
  }
  return { path, lines, blocks };
}

/** The text without its code blocks, line by line. */
export function proseOf({ lines, blocks }: Document): string[] {
  const prose = [...lines];
  for (const { line, lines: code } of blocks) prose.fill('', line - 1, line + 1 + code.length);
  return prose;
}

/** Links that lead nowhere, as `docs/callee.md: nowhere.md#gone`. Addresses on the web are not looked at. */
export function deadLinks(document: Document): string[] {
  const links = proseOf(document).flatMap((line) =>
    [...line.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link),
  );
  return links
    .filter((link) => !/^[a-z]+:/.test(link))
    .filter((link) => {
      const [file = '', anchor] = link.split('#');
      const path = file === '' ? document.path : relative('.', join(dirname(document.path), file));
      if (!exists(path)) return true;
      return anchor !== undefined && !anchorsOf(readDocument(path)).includes(anchor);
    })
    .map((link) => `${document.path}: ${link}`);
}

/** The anchors GitHub makes of headings. */
function anchorsOf(document: Document): string[] {
  return proseOf(document)
    .flatMap((line) => /^#{1,6} (.*)$/.exec(line)?.[1] ?? [])
    .map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .trim()
        .replaceAll(' ', '-'),
    );
}

function exists(path: string): boolean {
  return existsSync(join(ROOT, path));
}
