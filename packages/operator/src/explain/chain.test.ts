import { describe, expect, it } from 'vitest'
import { note, warning } from '../finding.ts'
import { explain, type ExplainFacts } from './chain.ts'

const healthy: ExplainFacts = {
  host: 'a.example',
  sources: [{ name: 'HTTPProxy ns/web', findings: [], isPublishing: true }],
  targets: ['192.0.2.1'],
  addressFindings: [],
  certificate: { name: 'ns/web', findings: [], isPresent: true, isReady: true, message: '' },
  endpoint: { name: 'ns/web', targets: ['192.0.2.1'], generation: 1, observedGeneration: undefined },
  plan: { zone: 'example', pending: [], refused: [], records: ['192.0.2.1'] },
  answer: { server: '127.0.0.1:53', targets: ['192.0.2.1'] },
}

function firstBroken(changes: Partial<ExplainFacts>): string | undefined {
  const hop = explain({ ...healthy, ...changes }).firstBroken
  return hop === undefined ? undefined : `${hop.name} ${hop.reason}`
}

describe('explain', () => {
  it('walks seven hops and finds nothing broken', () => {
    const { hops } = explain(healthy)
    expect(hops.map((hop) => `${hop.name} ${hop.state}`)).toEqual([
      'source ok',
      'address ok',
      'certificate ok',
      'endpoint ok',
      'plan ok',
      'provider ok',
      'answer ok',
    ])
  })

  it.each<[string, Partial<ExplainFacts>, string]>([
    [
      'nobody names the host',
      { sources: [], targets: [], certificate: undefined, endpoint: undefined },
      'source SourceNotFound',
    ],
    [
      'another class',
      { sources: [{ name: 'x', findings: [note('ClassNotWatched', 'no')], isPublishing: false }] },
      'source ClassNotWatched',
    ],
    [
      'an older claim',
      { sources: [{ name: 'x', findings: [warning('ClaimHeldByOther', 'no')], isPublishing: false }] },
      'source ClaimHeldByOther',
    ],
    [
      'no address',
      { targets: [], addressFindings: [warning('NoLoadBalancerAddress', 'no')] },
      'address NoLoadBalancerAddress',
    ],
    [
      'a certificate that is not ready',
      { certificate: { name: 'c', findings: [], isPresent: true, isReady: false, message: 'pending' } },
      'certificate CertificateNotReady',
    ],
    [
      'a certificate that was refused',
      {
        certificate: {
          name: 'c',
          findings: [warning('AnnotationInvalid', 'no')],
          isPresent: false,
          isReady: false,
          message: '',
        },
      },
      'certificate AnnotationInvalid',
    ],
    ['no DNSEndpoint', { endpoint: undefined }, 'endpoint EndpointMissing'],
    [
      'a DNSEndpoint with other targets',
      { endpoint: { name: 'e', targets: ['192.0.2.9'], generation: 1, observedGeneration: 1 } },
      'endpoint EndpointMissing',
    ],
    [
      'ExternalDNS behind',
      { plan: undefined, endpoint: { name: 'e', targets: ['192.0.2.1'], generation: 2, observedGeneration: 1 } },
      'plan NotYetPropagated',
    ],
    [
      'a refused plan',
      { plan: { zone: 'z', pending: [], refused: [{ reason: 'GuardTripped', message: 'no' }], records: [] } },
      'plan GuardTripped',
    ],
    [
      'a provider without the record',
      { plan: { zone: 'z', pending: [], refused: [], records: [] } },
      'provider NotYetPropagated',
    ],
    ['another answer', { answer: { server: 's', targets: [] } }, 'answer AnswerDiffers'],
  ])('%s', (_, changes, expected) => {
    expect(firstBroken(changes)).toBe(expected)
  })

  it('what nobody asked for breaks nothing', () => {
    expect(firstBroken({ certificate: undefined, plan: undefined, answer: undefined })).toBeUndefined()
  })
})
