/** `seamark status`: the overview on a terminal, from the objects of the cluster. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { State } from '@seamark/dashboard'
import { DNSEndpoint, DNSLoadBalancer } from '@seamark/operator'
import { expect, it } from 'vitest'
import { runCommand } from '../records/run-command.ts'
import { POLL, readState, startPage, ZONE } from './page-environment.ts'

it('seamark status has the hosts, answers and needs of the page, and exits with 2 while something needs somebody', async () => {
  await using page = await startPage()
  const folder = await mkdtemp(join(tmpdir(), 'seamark-status-'))
  try {
    const kubeconfig = join(folder, 'kubeconfig')
    const config = join(folder, 'seamark.yaml')
    await writeFile(kubeconfig, page.server.kubeconfig, { mode: 0o600 })
    await writeFile(
      config,
      JSON.stringify({
        apiVersion: 'config.seamark.io/v1alpha1',
        kind: 'ManagerConfiguration',
        mode: 'enforce',
        leaderElection: { enabled: false },
        balance: { enabled: true },
        dns: { listen: ['127.0.0.1:0'], zones: [ZONE] },
      }),
    )
    const status = async (...flags: string[]) =>
      runCommand(['status', '--kubeconfig', kubeconfig, '--config', config, '-n', 'seamark', ...flags])
    const [name, evil] = [`web.${ZONE}`, `\u001b[31m<b>.${ZONE}`]
    await page.client.create(DNSEndpoint, {
      metadata: { namespace: 'default', name: 'web' },
      spec: { endpoints: [{ dnsName: name, recordType: 'A', targets: ['203.0.113.1'], recordTTL: 60 }] },
    })
    const shares = (state: State) =>
      state.hosts.map((host) => [host.name, host.state, host.answers.map(({ share }) => share)])
    await expect.poll(async () => shares(await readState(page.url)), POLL).toEqual([[name, 'as it should be', [1]]])
    const fine = await status('-o', 'json')
    expect(fine.code).toBe(0)
    const state = JSON.parse(fine.stdout) as State
    expect(shares(state)).toEqual([[name, 'as it should be', [1]]])
    // Since when is what a process saw.
    const dateless = ({ hosts }: State) => hosts.map((host) => ({ ...host, since: undefined }))
    expect(dateless(state)).toEqual(dateless(await readState(page.url)))
    expect((await status()).stdout).toContain('Nothing needs you')

    await page.client.create(DNSLoadBalancer, {
      metadata: { namespace: 'default', name: 'evil' },
      spec: { DNSName: evil },
    })
    const ill = await status('-o', 'wide')
    expect(ill.code).toBe(2)
    expect(ill.stdout).toContain('Needs you (1)')
    expect(ill.stdout).toMatch(/web\.demo\.test +as it should be/)
    expect(ill.stdout).not.toContain('\u001b')
  } finally {
    await rm(folder, { recursive: true })
  }
})
