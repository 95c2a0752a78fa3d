import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hcpTables } from '../shared/store/tables.ts';
import { ROOT } from './docs/markdown.ts';

const sources = ['callee', 'caller', 'session', 'shared'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => readFileSync(join(ROOT, folder, path), 'utf8')),
);

/** Every word the sources have at the place a pattern captures. */
function words(...patterns: readonly RegExp[]): string[] {
  const found = patterns.flatMap((pattern) =>
    sources.flatMap((source) => [...source.matchAll(pattern)].map(([, word = '']) => word)),
  );
  return [...new Set(found)].sort();
}

/** Those of the words that a document does not name as code. */
function unexplained(document: string, found: readonly string[]): string[] {
  const text = readFileSync(join(ROOT, 'docs', document), 'utf8');
  return found.filter((word) => !text.includes(`\`${word}\``));
}

describe('the documents name', () => {
  it.each([
    ['rejections', 8, [/reason_?[cC]ode: '(\w+)'/g, /reason_code: .*\? '(\w+)'/g]],
    ['failures', 4, [/error_code: '(\w+)'/g, /new TaskFailure\('(\w+)'/g, /\? '(\w+)' : 'execution_error'/g]],
    [
      'changes of state',
      10,
      [/(?:move|#move|#fail)\('\w+', '(\w+)'/g, /stateChanged\('\w+', '\w+', '(\w+)'/g, /isRecovering \? '(\w+)'/g],
    ],
    ['warnings and errors a session tells of', 3, [/data: \{ code: '(\w+)'/g, /SOFT_LIMIT = '(\w+)'/g]],
    ['closed approvals', 5, [/notOpen\('(\w+)'/g]],
    ['refused tokens', 7, [/tokenInvalid\(\s*'(\w+)'/g]],
    ['conflicts of a store', 1, [/reason: '(exists|missing|mismatch|refused|headers)'/g]],
    ['ranges that cannot be replayed', 2, [/beyond\([^']*'(\w+)'\)/g, /to_sequence: end, reason: '(\w+)'/g]],
  ])('every reason for %s', (_, least, patterns) => {
    const found = words(...patterns);
    expect(found.length).toBeGreaterThanOrEqual(least);
    expect(unexplained('errors.md', found)).toEqual([]);
  });

  it('every table, and none that is not', () => {
    const text = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8').split('## Tables')[1] ?? '';
    const rows = text.split('\n').filter((line) => line.startsWith('| `'));
    const named = rows.flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name));
    expect(named.sort()).toEqual(Object.keys(hcpTables).sort());
  });

  it('every metric and span', () => {
    const metrics = words(/create(?:Counter|Histogram|ObservableGauge)\('([\w.]+)'/g, /startSpan\('([\w.]+)'/g);
    expect(metrics.length).toBeGreaterThan(6);
    expect(unexplained('operations.md', metrics)).toEqual([]);
  });

  it('every option of both sides', () => {
    const guides = ['callee.md', 'caller.md', 'safety.md', 'operations.md', 'guarantees.md', 'scale-out.md'];
    const text = guides.map((name) => readFileSync(join(ROOT, 'docs', name), 'utf8')).join('\n');
    const missing = ['callee', 'caller'].flatMap((side) => {
      const source = readFileSync(join(ROOT, side, 'options.ts'), 'utf8');
      const [, list = ''] = /export interface Call(?:ee|er)Options[^{]*\{([\s\S]*?)\n\}/.exec(source) ?? [];
      const options = [...list.matchAll(/readonly (\w+)\??:/g)].map(([, name = '']) => name);
      expect(options.length).toBeGreaterThan(15);
      return options.filter((name) => !new RegExp(`\\b${name}\\b`).test(text)).map((name) => `${side}: ${name}`);
    });
    expect(missing).toEqual([]);
  });
});
