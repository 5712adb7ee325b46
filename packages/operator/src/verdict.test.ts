import { describe, expect, it } from 'vitest'
import { headlineOf, judge, type JudgedHop } from './verdict.ts'

const held: JudgedHop = { name: 'plan', state: 'broken', reason: 'ForeignOwner', text: 'it belongs to b' }
const certificate: JudgedHop = {
  name: 'certificate',
  state: 'degraded',
  reason: 'CertificateNotReady',
  text: 'pending',
}
const fine: JudgedHop = { name: 'provider', state: 'ok', text: 'zone has it' }
const said = (...given: Parameters<typeof judge>) => headlineOf('a.example', judge(...given))

describe('the verdict', () => {
  it('is as it should be without a fault', () => {
    expect(said([fine], 'right')).toEqual(['a.example is as it should be'])
    expect(said([fine], 'nothing')).toEqual(['a.example is as it should be'])
  })

  it('is degraded while the answer is right, and broken when clients get another one, none, or it is not known', () => {
    const text = 'at plan: the record has the ownership marker of another owner'
    expect(said([held, fine], 'right')).toEqual([`a.example is degraded ${text}`])
    for (const answer of ['wrong', 'nothing', undefined] as const)
      expect(said([held, fine], answer)).toEqual([`a.example is broken ${text}`])
    expect(judge([certificate], 'nothing').state).toBe('degraded')
  })

  it('is broken where the right answer leads to nothing that serves', () => {
    for (const name of ['leaf', 'health', 'route'])
      expect(judge([{ name, state: 'broken', text: '' }], 'right').state).toBe('broken')
  })

  it('names what holds DNS up, and not the certificate that waits for it', () => {
    expect(judge([certificate, held], 'wrong').at).toBe(held)
    expect(judge([certificate, held], 'right').at).toBe(held)
    expect(judge([certificate, fine], 'right').at).toBe(certificate)
    const cluster: JudgedHop = { name: 'cluster', state: 'degraded', text: '' }
    expect(judge([cluster, held], 'nothing').at).toBe(held)
  })

  it('says what a deletion, a drain or a move waits for, and until when', () => {
    const waiting = { what: 'drained', waitsFor: 'caches', until: '2026-11-16T15:56:03Z' } as const
    expect(said([fine], 'right', waiting)).toEqual(['a.example is being drained: waits for caches until 15:56:03Z'])
    expect(said([certificate], 'right', { what: 'moved', waitsFor: 'DNS servers' })).toEqual([
      'a.example is degraded at certificate: the certificate is not issued yet',
      'a.example is being moved: waits for DNS servers',
    ])
  })
})
