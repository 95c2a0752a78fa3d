import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { killPid, readPid } from './processes.ts';

/** A temporary folder for one server. Closing it kills every process named by a pid file in it and removes it. */
export interface Workspace {
  readonly folder: string;
  subfolder(name: string): string;
  /** Runs when the workspace closes, after the kills. Synchronous, because it must also work while the process exits. */
  onClose(work: () => void): void;
  close(): void;
}

const open = new Set<Workspace>();

export function createWorkspace(server: string): Workspace {
  const folder = mkdtempSync(join(tmpdir(), `hcp-${server}-`));
  const work: (() => void)[] = [];
  const workspace: Workspace = {
    folder,
    subfolder: (name) => {
      const path = join(folder, name);
      mkdirSync(path, { recursive: true });
      return path;
    },
    onClose: (task) => {
      work.push(task);
    },
    close: () => {
      if (!open.delete(workspace)) return;
      if (open.size === 0) unguard();
      killAll(folder);
      for (const task of work) task();
      // Dying servers may still write for a moment, which makes a folder "not empty" again.
      rmSync(folder, { recursive: true, force: true, maxRetries: 30, retryDelay: 100 });
    },
  };
  if (open.size === 0) guard();
  open.add(workspace);
  return workspace;
}

/** The pid files are the truth, not the memory of this process: a test worker may have started a server again. */
function killAll(folder: string): void {
  for (const entry of readdirSync(folder)) {
    const pid = entry.endsWith('.pid') ? readPid(join(folder, entry)) : undefined;
    if (pid !== undefined) killPid(pid);
  }
}

function closeAll(): void {
  for (const workspace of open) workspace.close();
}

function onSignal(signal: NodeJS.Signals): void {
  closeAll();
  // Raised again, now without us: libraries that listen too (signal-exit does) end the process only when they are alone.
  process.kill(process.pid, signal);
}

function guard(): void {
  process.on('exit', closeAll);
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
}

function unguard(): void {
  process.off('exit', closeAll);
  process.off('SIGINT', onSignal);
  process.off('SIGTERM', onSignal);
}
