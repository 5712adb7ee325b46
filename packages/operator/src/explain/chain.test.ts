import { describe, expect, it } from 'vitest'
import { note, warning } from '../finding.ts'
import { explain } from './chain.ts'
import type { ExplainFacts } from './facts.ts'

const healthy: ExplainFacts = {
  host: 'a.example',
  sources: [{ name: 'HTTPProxy ns/web', findings: [], isPublishing: true }],
  targets: ['192.0.2.1'],
  addressFindings: [],
  certificate: { name: 'ns/web', findings: [], isPresent: true, isReady: true, message: '' },
  endpoint: { name: 'ns/web', targets: ['192.0.2.1'], generation: 1, observedGeneration: undefined },
  plan: { zone: 'example', pending: [], refused: [], records: ['192.0.2.1'] },
  answers: [{ server: '127.0.0.1:53', targets: ['192.0.2.1'] }],
}

const running = (state: 'held' | 'expired' | 'unknown') => ({
  isPaused: false,
  mode: 'enforce' as const,
  lease: { key: 'seamark/leader', state, renewedAt: '2029-01-01T00:00:00Z' },
})

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

  it('skips what publish would make when it is off, and leaves the verdict to DNSEndpoints and the route', () => {
    const off: Partial<ExplainFacts> = {
      isPublishOn: false,
      sources: [{ name: 'Ingress ns/web', findings: [], isPublishing: false }],
      targets: [],
      addressFindings: [warning('NoLoadBalancerAddress', 'no')],
      certificate: undefined,
      endpoint: undefined,
      plan: undefined,
    }
    const served = { isServed: true, text: 'served by Ingress ns/web' }
    const { hops, firstBroken: found } = explain({ ...healthy, ...off, route: served })
    expect(found).toBeUndefined()
    expect(hops.map((hop) => `${hop.name} ${hop.state}`)).toEqual([
      'source skipped',
      'address skipped',
      'certificate skipped',
      'endpoint skipped',
      'plan skipped',
      'provider skipped',
      'answer skipped',
      'route ok',
    ])
    expect(hops[0]?.text).toBe(
      'Ingress ns/web names the host and gets no record: publish is off (publish.enabled: false)',
    )
    expect(firstBroken({ ...off, route: { isServed: false, text: 'no route' } })).toBe('route RouteNotServed')
    expect(firstBroken({ ...off, sources: [] })).toBe('source SourceNotFound')
    expect(firstBroken({ ...off, sources: [], route: served })).toBeUndefined()
    expect(firstBroken({ isPublishOn: false })).toBeUndefined()
    expect(firstBroken({ isPublishOn: false, plan: undefined, answers: [{ server: 'x', targets: [] }] })).toBe(
      'answer AnswerDiffers',
    )
  })

  it('of a host of the fleet, an answer is judged by what its load balancer publishes, not by what a source requests', () => {
    const fleet = [{ name: 'claim', state: 'ok', text: 'owned' }] as const
    const answer = (...targets: string[]) => [{ server: 's', targets }]
    const given = { fleet, targets: [], endpoint: undefined, plan: undefined, published: ['192.0.2.1'] }
    expect(firstBroken({ ...given, answers: answer('192.0.2.1') })).toBeUndefined()
    expect(firstBroken({ ...given, answers: answer('192.0.2.1', '192.0.2.2') })).toBe('answer AnswerDiffers')
    expect(firstBroken({ ...given, targets: ['192.0.2.2'], answers: answer('192.0.2.2') })).toBe('answer AnswerDiffers')
    expect(firstBroken({ ...given, isPublishOn: false, published: [], answers: answer('192.0.2.1') })).toBe(
      'answer AnswerDiffers',
    )
  })

  it.each<[string, Partial<ExplainFacts>, string]>([
    [
      'no source names the host',
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
      'a certificate that is not renewed in time',
      {
        certificate: {
          name: 'c',
          findings: [],
          isPresent: true,
          isReady: true,
          message: '',
          validity: { state: 'expiring', until: '2026-03-01T00:00:00Z', since: '2026-02-20T00:00:00Z' },
        },
      },
      'certificate CertificateExpiring',
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
      'ExternalDNS that has not observed the generation',
      { plan: undefined, endpoint: { name: 'e', targets: ['192.0.2.1'], generation: 2, observedGeneration: 1 } },
      'plan ChangePending',
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
    [
      'sources that may not be read',
      {
        sources: [],
        targets: [],
        certificate: undefined,
        endpoint: undefined,
        forbidden: [warning('WatchForbidden', 'HTTPProxy cannot be listed: forbidden')],
      },
      'source WatchForbidden',
    ],
    [
      'a guard of publish',
      { endpoint: undefined, reported: [warning('GuardTripped', '9 of 10 objects would be removed at once')] },
      'endpoint GuardTripped',
    ],
    [
      'a DNSEndpoint that the API server refused',
      { endpoint: undefined, reported: [warning('ApplyRejected', 'DNSEndpoint ns/web: denied by a webhook')] },
      'endpoint ApplyRejected',
    ],
    [
      'a Certificate that the API server refused, and nothing else',
      {
        certificate: { name: 'ns/web', findings: [], isPresent: false, isReady: false, message: '' },
        reported: [warning('ApplyRejected', 'Certificate ns/web: denied by a webhook')],
      },
      'certificate ApplyRejected',
    ],
    [
      'a kind that is not installed',
      {
        endpoint: undefined,
        reported: [warning('CRDNotInstalled', 'DNSEndpoint.externaldns.k8s.io is not installed')],
      },
      'endpoint CRDNotInstalled',
    ],
    ['a pause', { endpoint: undefined, manager: { isPaused: true, mode: 'enforce' } }, 'endpoint Paused'],
    [
      'a request that no route takes',
      { route: { isServed: false, text: 'no virtual host of the gateway has this name' } },
      'route RouteNotServed',
    ],
    ['observe mode', { endpoint: undefined, manager: { isPaused: false, mode: 'observe' } }, 'endpoint ObserveMode'],
    [
      'a record whose source was deleted, and whose deletion is held',
      {
        sources: [],
        targets: [],
        certificate: undefined,
        endpoint: undefined,
        plan: { zone: 'z', pending: [], refused: [{ reason: 'Quarantined', message: 'no' }], records: ['192.0.2.1'] },
      },
      'plan Quarantined',
    ],
    ['another answer', { answers: [{ server: 's', targets: [] }] }, 'answer AnswerDiffers'],
  ])('%s', (_, changes, expected) => {
    expect(firstBroken(changes)).toBe(expected)
  })

  it('gives the verdict by what clients get, and names what to act on first', () => {
    const said = (changes: Partial<ExplainFacts>) => {
      const { verdict } = explain({ ...healthy, ...changes })
      return `${verdict.text} (${verdict.state})`
    }
    const refused = [{ reason: 'ForeignOwner' as const, message: 'it belongs to b' }]
    const waitingForDns = {
      certificate: { name: 'ns/web', findings: [], isPresent: true, isReady: false, message: 'waiting for DNS-01' },
      plan: { zone: 'example', pending: [], refused, records: ['198.51.100.9'] },
    }
    expect(said({ ...waitingForDns, answers: [{ server: 's', targets: ['198.51.100.9'] }] })).toBe(
      'a.example is broken at plan: the record has the ownership marker of another owner (broken)',
    )
    // Another owner answers the same.
    expect(said(waitingForDns)).toBe(
      'a.example is degraded at plan: the record has the ownership marker of another owner (degraded)',
    )
    // Without an answer the records of the zone show what clients do not get, and not that they get them.
    const paused = { endpoint: undefined, manager: { isPaused: true, mode: 'enforce' as const }, answers: undefined }
    expect(said(paused)).toBe('a.example is broken at endpoint: writing is paused (broken)')
    expect(said({ ...paused, plan: { zone: 'example', pending: [], refused: [], records: [] } })).toBe(
      'a.example is broken at endpoint: writing is paused (broken)',
    )
    expect(said({})).toBe('a.example is as it should be (as it should be)')
  })

  describe('a host that nothing names', () => {
    const nobody: Partial<ExplainFacts> = {
      sources: [],
      targets: [],
      certificate: undefined,
      endpoint: undefined,
      answers: [{ server: 's', targets: [] }],
    }
    const textOf = (changes: Partial<ExplainFacts>) => explain({ ...healthy, ...nobody, ...changes }).hops[0]?.text

    it('is unknown, and where no zone contains it, that is said, and no zone is named', () => {
      const nowhere = {
        zone: '',
        pending: [],
        refused: [{ reason: 'NoMatchingZone' as const, message: 'no zone' }],
        records: [],
      }
      expect(firstBroken({ ...nobody, plan: nowhere })).toBe('source SourceNotFound')
      expect(textOf({ plan: nowhere })).toBe(
        'no source and no DNSEndpoint names a.example, and it is in no zone of ours; check the host, the namespace and the kinds that are read',
      )
      const empty = { zone: 'example', pending: [], refused: [], records: [] }
      expect(firstBroken({ ...nobody, plan: empty })).toBe('source SourceNotFound')
    })

    it('is as it should be where its records were removed because nothing names it any more', () => {
      const removed = { at: '2026-11-16T08:56:28Z', reason: 'NoLongerWanted' as const, plan: 1_800_000_000_000 }
      const plan = { zone: 'example', pending: [], refused: [], records: [], removed }
      expect(firstBroken({ ...nobody, plan })).toBeUndefined()
      expect(textOf({ plan })).toContain('its records were removed at 2026-11-16T08:56:28Z by plan 1800000000000')
      // It is answered all the same.
      const answers = [{ server: 's', targets: ['192.0.2.1'] }]
      expect(firstBroken({ ...nobody, plan, answers })).toBe('answer AnswerDiffers')
    })
  })

  it('a change that the manager reports as not done is no change that is on its way', () => {
    const plan = { zone: 'z', pending: ['create A 192.0.2.1'], refused: [], records: [] }
    const reported = [warning('CredentialsInvalid', 'a.example. A: BADTIME')]
    expect(firstBroken({ plan: { ...plan, reported }, answers: undefined })).toBe('plan CredentialsInvalid')
    expect(firstBroken({ plan, answers: undefined })).toBe('plan ChangePending')
    expect(firstBroken({ plan: { ...plan, pending: [], records: ['192.0.2.1'], reported } })).toBeUndefined()
  })

  it('the records of a zone that is read now count before what its servers answered some time ago', () => {
    const fleet = [{ name: 'claim', state: 'ok', text: 'owned' }] as const
    const hop = { name: 'answer', state: 'ok', text: 'DNS answers the hosts' } as const
    const given = {
      fleet,
      published: ['192.0.2.1'],
      answers: undefined,
      storedAnswer: { state: 'right' as const, hop },
      manager: running('held'),
    }
    const stateOf = (...records: string[]) => {
      const plan = { zone: 'example', pending: [], refused: [], records }
      return explain({ ...healthy, ...given, plan }).verdict.state
    }
    expect([stateOf('192.0.2.1'), stateOf('192.0.2.9'), stateOf()]).toEqual(['as it should be', 'broken', 'broken'])
  })

  it('a host of the fleet that is in no zone of ours is degraded while somebody else answers it', () => {
    const fleet = [{ name: 'claim', state: 'ok', text: 'owned' }] as const
    const hop = { name: 'answer', state: 'ok', text: 'DNS answers the hosts' } as const
    const refused = [{ reason: 'NoMatchingZone' as const, message: 'no zone' }]
    const plan = { zone: '', pending: [], refused, records: [] }
    const facts = { sources: [], targets: [], fleet, published: ['192.0.2.1'], answers: undefined, plan }
    const given = { ...healthy, ...facts, manager: running('held') }
    const stateOf = (storedAnswer: ExplainFacts['storedAnswer']) => {
      const { verdict } = explain({ ...given, ...(storedAnswer !== undefined && { storedAnswer }) })
      return `${verdict.state} ${verdict.reason}`
    }
    expect(stateOf({ state: 'right', hop })).toBe('degraded NoMatchingZone')
    expect(stateOf(undefined)).toBe('broken NoMatchingZone')
  })

  it('without a configuration it does not say who has observed a DNSEndpoint', () => {
    const endpoint = { name: 'e', targets: ['192.0.2.1'], generation: 1, observedGeneration: 1 }
    const { hops } = explain({ ...healthy, plan: undefined, endpoint })
    expect(hops.filter(({ name }) => ['plan', 'provider'].includes(name)).map(({ text }) => text)).toEqual([
      'what serves the DNSEndpoint has observed it; no provider is configured here (--config)',
      'no provider is configured here (--config)',
    ])
  })

  it('an answer by weight or region has some of the targets', () => {
    const published = ['192.0.2.1', '192.0.2.2']
    const given = { published, isAnswerPartial: true, plan: undefined, endpoint: undefined, targets: [] }
    const fleet = [{ name: 'claim', state: 'ok', text: 'owned' }] as const
    const answered = (...targets: string[]) => firstBroken({ ...given, fleet, answers: [{ server: 's', targets }] })
    expect(answered('192.0.2.2')).toBeUndefined()
    expect(answered('192.0.2.3')).toBe('answer AnswerDiffers')
    expect(answered()).toBe('answer AnswerDiffers')
  })

  it('a report of a guard is ignored once the object is as desired', () => {
    expect(firstBroken({ reported: [warning('GuardTripped', 'no')] })).toBeUndefined()
  })

  it('a plan without the state of a manager is said to have fewer facts', () => {
    const plan = { zone: 'z', pending: ['create A 192.0.2.1'], refused: [], records: ['192.0.2.1'] }
    const textOf = (fact: ExplainFacts['plan']) => explain({ ...healthy, plan: fact }).hops[4]?.text
    expect(textOf(plan)).toBe('zone z: create A 192.0.2.1: not written yet')
    expect(textOf({ ...plan, isWithoutState: true })).toContain('no manager has persisted a decision about this zone')
  })

  it('an answer without records is reported as none', () => {
    const nothing = { targets: [], endpoint: undefined, certificate: undefined, plan: undefined }
    const { hops } = explain({ ...healthy, ...nothing, answers: [{ server: '192.0.2.53', targets: [] }] })
    expect(hops.at(-1)?.text).toBe('192.0.2.53 answers nothing, as desired')
  })

  it('a hop that is not requested is not broken', () => {
    expect(firstBroken({ certificate: undefined, plan: undefined })).toBeUndefined()
  })

  describe('what clients get', () => {
    const fleet = [{ name: 'claim', state: 'ok', text: 'owned' }] as const
    const hop = { name: 'answer', state: 'ok', text: 'DNS answers the hosts' } as const
    const refused = { server: '127.0.0.1:53', targets: [], fault: '127.0.0.1:53: ECONNREFUSED' }
    const right = { server: '192.0.2.53', targets: ['192.0.2.1'] }
    const said = (changes: Partial<ExplainFacts>) => {
      const { verdict, hops } = explain({ ...healthy, ...changes })
      return `${verdict.state}, ${verdict.reason}: ${hops.find(({ name }) => name === 'answer')?.text}`
    }

    it('is nothing while no server answers, whatever the zone has and the manager stored', () => {
      const stored = { fleet, published: ['192.0.2.1'], storedAnswer: { state: 'right' as const, hop } }
      expect(said({ answers: [refused] })).toBe('broken, NoAnswer: 127.0.0.1:53: ECONNREFUSED')
      expect(said({ ...stored, manager: running('held'), answers: [refused] })).toMatch(/^broken, NoAnswer/)
    })

    it('is not known while no server is known, and what the manager stored counts only as long as it runs', () => {
      expect(said({ answers: [] })).toMatch(/^degraded, AnswerUnknown: .* --server/)
      const stored = { fleet, published: ['192.0.2.1'], answers: [], storedAnswer: { state: 'right' as const, hop } }
      expect(said({ ...stored, manager: running('held') })).toBe(
        'as it should be, undefined: DNS answers the hosts: asked by the manager within the last 5 min (Lease seamark/leader, renewed at 2029-01-01T00:00:00Z)',
      )
      for (const state of ['expired', 'unknown'] as const)
        expect(said({ ...stored, manager: running(state) })).toMatch(/^degraded, AnswerUnknown/)
    })

    it('is what each of the servers answers: one that does not is a fault, and one that answers something else is an outage', () => {
      expect(said({ answers: [right, refused] })).toMatch(/^degraded, NoAnswer: 127\.0\.0\.1:53/)
      expect(said({ answers: [right, { server: 'b', targets: [] }] })).toBe(
        'broken, AnswerDiffers: b answers nothing instead of 192.0.2.1',
      )
    })
  })

  it('a root that no fleet has taken up is broken, whether a manager runs, is paused or is gone, and with publish off, too', () => {
    const fresh: Partial<ExplainFacts> = {
      sources: [{ name: 'Ingress ns/web', findings: [], isPublishing: true, isNewRoot: true }],
      targets: [],
      addressFindings: [note('BalancePublishes', 'host a.example is of a root, and balance publishes it')],
      certificate: undefined,
      endpoint: undefined,
      plan: { zone: 'example', pending: [], refused: [], records: [] },
      answers: [{ server: '127.0.0.1:53', targets: [] }],
    }
    expect(firstBroken({ ...fresh, manager: running('held') })).toBe('claim ChangePending')
    expect(firstBroken({ ...fresh, manager: running('expired') })).toBe('claim NoManager')
    expect(firstBroken({ ...fresh, manager: { ...running('held'), isPaused: true } })).toBe('claim Paused')
    expect(firstBroken({ ...fresh, isPublishOn: false })).toBe('claim ChangePending')
    // Another source publishes the host.
    expect(firstBroken({ ...fresh, targets: ['192.0.2.1'] })).not.toMatch(/^claim/)
  })

  it('a change that nobody writes is not on its way: without a manager that is said', () => {
    const plan = { zone: 'z', pending: ['create A 192.0.2.1'], refused: [], records: [] }
    const answers = [{ server: 's', targets: [] }]
    const { hops, verdict } = explain({ ...healthy, plan, answers, manager: running('expired') })
    expect(verdict.text).toBe('a.example is broken at plan: no manager holds the Lease, so that nothing is written')
    expect(hops.find(({ name }) => name === 'plan')?.text).toBe(
      'zone z: create A 192.0.2.1: not written; no manager holds Lease seamark/leader since 2029-01-01T00:00:00Z',
    )
    expect(JSON.stringify(hops)).not.toContain('NotYetPropagated')
    expect(firstBroken({ plan, answers, manager: running('expired') })).toBe('plan NoManager')
    expect(firstBroken({ plan, answers, manager: running('held') })).toBe('plan ChangePending')
  })

  it('a host in no zone of the manager is broken at the plan, also without its configuration', () => {
    const storedAnswer = {
      state: 'nothing' as const,
      hop: { name: 'answer', state: 'broken', reason: 'NoMatchingZone', text: 'no zone' } as const,
    }
    const fleet = [{ name: 'claim', state: 'ok', text: 'owned' }] as const
    const given = { fleet, published: ['192.0.2.1'], plan: undefined, answers: [], storedAnswer }
    expect(firstBroken(given)).toBe('plan NoMatchingZone')
  })

  describe('a host of a load balancer', () => {
    const balance = {
      name: 'web/shop',
      ttl: 30,
      endpoints: [
        {
          name: 'east',
          host: '192.0.2.1',
          health: 'healthy',
          detail: 'status 200',
          isActive: true,
          membership: { since: '2028-01-01T00:00:00Z', message: 'it is healthy' },
        },
        {
          name: 'west',
          host: '192.0.2.2',
          health: 'unhealthy',
          since: '2029-01-01T00:00:00Z',
          detail: 'connection refused',
          isActive: false,
          membership: { since: '2029-01-01T00:00:01Z', message: 'it does not pass its health check' },
        },
      ],
      changedAt: '2029-01-01T00:00:01Z',
      selection: { isReady: true, reason: 'HealthyEndpoints', message: '', since: '2029-01-01T00:00:01Z' },
    } as const

    it('has the hops health and selection: the last results, why each endpoint is published or not, and until when caches keep the older answer', () => {
      const { hops, firstBroken: fault } = explain({ ...healthy, balance })
      expect(fault).toBeUndefined()
      expect(hops.slice(1, 3)).toEqual([
        {
          name: 'health',
          state: 'ok',
          text: 'east (192.0.2.1) is healthy: status 200; west (192.0.2.2) is unhealthy since 2029-01-01T00:00:00Z: connection refused',
        },
        {
          name: 'selection',
          state: 'ok',
          reason: 'HealthyEndpoints',
          text:
            'east is published since 2028-01-01T00:00:00Z: it is healthy; ' +
            'west is not published since 2029-01-01T00:00:01Z: it does not pass its health check. ' +
            'The last change was at 2029-01-01T00:00:01Z: with a TTL of 30 s, caches may keep the older answer until 2029-01-01T00:00:31Z',
        },
      ])
    })

    it('is broken at health when no endpoint is healthy, and at selection when none could be published', () => {
      const sick = balance.endpoints.map((endpoint) => ({ ...endpoint, health: 'unhealthy' as const }))
      expect(firstBroken({ balance: { ...balance, endpoints: sick } })).toBe('health AllUnhealthy')
      expect(firstBroken({ balance: { ...balance, endpoints: [] } })).toBe('health NoEndpoints')
      const selection = { isReady: false, reason: 'ForeignOwner', message: 'it is not ours', since: 'x' }
      expect(firstBroken({ balance: { ...balance, selection } })).toBe('selection ForeignOwner')
    })
  })
})
