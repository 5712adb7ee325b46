/** The examples of docs/providers are configurations that load, and docs/records.md names every code of the guards. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfig, REASONS } from '@seamark/operator'
import { describe, expect, it } from 'vitest'

const docs = join(import.meta.dirname, '../../../docs')
const pages = readdirSync(join(docs, 'providers')).filter((file) => file.endsWith('.md') && file !== 'plug-in.md')

describe('the documentation of providers', () => {
  it('has a page for each', () => {
    expect(pages.toSorted()).toEqual([
      'aws.md',
      'coredns.md',
      'dnsendpoint.md',
      'embedded.md',
      'memory.md',
      'powerdns.md',
      'rfc2136.md',
      'webhook.md',
    ])
  })

  it.each(pages.filter((page) => page !== 'embedded.md'))('%s shows a configuration that loads', (page) => {
    const file = /```yaml\n([^]*?)```/.exec(readFileSync(join(docs, 'providers', page), 'utf8'))?.[1] ?? ''
    const loaded = loadConfig({ file })
    expect(loaded.ok ? loaded.config.records.providers : loaded.faults).toMatchObject([
      { type: page.replace('.md', '') },
    ])
  })
})

it('docs/records.md names only codes that exist', () => {
  const text = readFileSync(join(docs, 'records.md'), 'utf8')
  const named = [...text.matchAll(/`([A-Z][a-z]+(?:[A-Z][a-zA-Z]+)+)`/g)].map((match) => match[1] ?? '')
  const codes = named.filter((name) => name !== 'DNSEndpoint')
  expect(codes.length).toBeGreaterThan(15)
  for (const code of codes) expect(Object.keys(REASONS)).toContain(code)
})
