/**
 * A program in a network namespace of its own, which ends with its processes. Its `lo` has the addresses of pods: an API server
 * refuses loopback addresses in EndpointSlices, and nothing outside of the namespace can be reached.
 */
import { spawn, spawnSync } from 'node:child_process'
import { needs } from '@seamark/kit'

/** Addresses on `lo` of the namespace. */
export const POD_ADDRESSES = ['10.77.0.1', '10.77.0.2', '10.77.0.3']

/** A container may have the program and not the right. */
export const canUnshare = needs('unshare', 'ip') && spawnSync('unshare', ['--net', 'true']).status === 0

const setUp = ['ip link set lo up', ...POD_ADDRESSES.map((address) => `ip addr add ${address}/32 dev lo`), 'exec "$@"']

/**
 * Runs a TypeScript program that prints a line of JSON for each of its scenarios: `name`, and `error` if it failed.
 * @returns the errors by name. Other lines of its output are shown
 */
export async function runInNamespace(
  program: string,
  args: readonly string[] = [],
): Promise<Map<string, string | undefined>> {
  const node = [process.execPath, '--conditions=source', '--import', 'tsx', program, ...args]
  const child = spawn('unshare', ['--net', 'sh', '-e', '-c', setUp.join('\n'), 'sh', ...node], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [output, log] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (log = `${log}${chunk}`.slice(-20_000)))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  const results = new Map<string, string | undefined>()
  for (const line of output.split('\n')) {
    if (!line.startsWith('{')) {
      if (line !== '') process.stdout.write(`${line}\n`)
      continue
    }
    const { name, error } = JSON.parse(line) as { name: string; error?: string }
    results.set(name, error)
  }
  if (code !== 0) throw new Error(`the program ended with ${code}; the end of its log:\n${log}`)
  return results
}
