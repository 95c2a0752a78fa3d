import { withLock } from './cache.ts';
import { findProgram, run } from './processes.ts';

/**
 * Installs Debian packages where that is possible and resolves either way; the caller looks for the program afterwards.
 * The exit code says little: rabbitmq-server's own service start is refused in a container, and the program is there.
 */
export async function aptInstall(packages: readonly string[]): Promise<void> {
  const apt = findProgram('apt-get');
  if (apt === undefined) throw new Error(`${packages.join(', ')} cannot be installed: this is no Debian`);
  if (process.getuid?.() !== 0) throw new Error(`${packages.join(', ')} can only be installed by root`);
  const options = { env: { DEBIAN_FRONTEND: 'noninteractive' }, timeoutMs: 600_000 };
  // apt fails at once when another apt holds the package lists, and both servers may need it at the same time.
  await withLock('apt', async () => {
    try {
      await run(apt, ['update'], options);
      await run(
        apt,
        ['install', '-y', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=300', ...packages],
        options,
      );
    } catch (error) {
      process.stderr.write(`services: ${error instanceof Error ? error.message : String(error)}\n`);
    }
  });
}
