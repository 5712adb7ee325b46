/** Get, list, paging, selectors (B3.3). */
import { expect } from 'vitest'
import { answers, area, type CaseContext, names, ok } from '../case.ts'
import type { Json } from '../client.ts'

async function fill(t: CaseContext): Promise<void> {
  for (const [name, labels] of Object.entries({
    a: { app: 'x', tier: '1' },
    b: { app: 'y' },
    c: { app: 'z', tier: '3' },
    d: {},
  })) {
    await ok(t.client.request('POST', t.widgets, { body: t.widget(name, { metadata: { name, labels } }) }), 201)
  }
}

const select =
  (expected: string[]) =>
  async (
    t: CaseContext,
    selector: string,
    kind: 'labelSelector' | 'fieldSelector' = 'labelSelector',
  ): Promise<void> => {
    await fill(t)
    expect(names(await ok(t.client.request('GET', t.widgets, { query: { [kind]: selector } })))).toEqual(expected)
  }

const labelCases: Record<string, [selector: string, expected: string[]]> = {
  equality: ['app=x', ['a']],
  'double equality': ['app==y', ['b']],
  'inequality matches objects without the label': ['app!=x', ['b', 'c', 'd']],
  in: ['app in (x,z)', ['a', 'c']],
  'notin matches objects without the label': ['app notin (x,y)', ['c', 'd']],
  exists: ['tier', ['a', 'c']],
  'does not exist': ['!tier', ['b', 'd']],
  'a comma means and': ['tier,app!=x', ['c']],
  'greater than': ['tier>2', ['c']],
  'less than': ['tier<2', ['a']],
  'an empty selector matches everything': ['', ['a', 'b', 'c', 'd']],
  'an empty value': ['app=', []],
  'in with an empty set means the empty value': ['app in ()', []],
  'spaces are ignored': ['  app  =  x  ', ['a']],
}

const fieldCases: Record<string, [selector: string, expected: string[]]> = {
  'metadata.name': ['metadata.name=b', ['b']],
  'metadata.name with double equality': ['metadata.name==b', ['b']],
  'metadata.name inequality': ['metadata.name!=b', ['a', 'c', 'd']],
  'two terms mean and': ['metadata.name!=b,metadata.name!=a', ['c', 'd']],
}

const badLabels: Record<string, string> = {
  'a in': "unable to parse requirement: found '' expected: '('",
  'a in (b': "unable to parse requirement: found '', expected: ',' or ')'",
  'a,,b': "found ',', expected: identifier after ','",
  '=b': "found '=', expected: !, identifier, or 'end of string'",
  'a=b c': "found 'c', expected: ',' or 'end of string'",
  'a>x': `unable to parse requirement: values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer`,
  'a b': "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
  '!a=b': "found '=', expected: ',' or 'end of string'",
  'a notin b': "unable to parse requirement: found 'b' expected: '('",
  'a==b,': "found '', expected: identifier after ','",
  'a=-b': `unable to parse requirement: values[0][a]: Invalid value: "-b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
}

const badFields: Record<string, string> = {
  'a=b': '"a" is not a known field selector: only "metadata.name", "metadata.namespace"',
  'metadata.name': "invalid selector: 'metadata.name'; can't understand 'metadata.name'",
  'metadata.name=a,b': "invalid selector: 'metadata.name=a,b'; can't understand 'b'",
  'a=b=c': 'invalid field selector: unescaped character in value: 61',
  'metadata.name=a\\': 'invalid field selector: invalid escape sequence: \\',
}

const listOptions = (why: string): string => `ListOptions.meta.k8s.io "" is invalid: ${why}`

export const read = [
  ...area('B3.3 get', {
    'returns kind and apiVersion': async (t) => {
      await ok(t.client.request('POST', t.maps, { body: t.map('a') }), 201)
      expect(await ok(t.client.request('GET', `${t.maps}/a`))).toMatchObject({
        kind: 'ConfigMap',
        apiVersion: 'v1',
        metadata: { name: 'a', namespace: t.ns },
      })
    },
    'of an absent object is NotFound with details': async (t) => {
      const reply = await t.client.request('GET', `${t.widgets}/none`)
      expect(reply.json).toEqual({
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message: `widgets.${t.group} "none" not found`,
        reason: 'NotFound',
        details: { name: 'none', group: t.group, kind: 'widgets' },
        code: 404,
      })
    },
    'returns an object in another version': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget('a', { spec: { size: 2 } }) }), 201)
      const other = await ok(t.client.request('GET', `/apis/${t.group}/v1beta1/namespaces/${t.ns}/widgets/a`))
      expect(other).toMatchObject({ apiVersion: `${t.group}/v1beta1`, spec: { size: 2 } })
    },
  }),
  ...area('B3.3 list', {
    'is sorted by name and has the global resourceVersion': async (t) => {
      for (const name of ['c', 'a', 'b']) await ok(t.client.request('POST', t.widgets, { body: t.widget(name) }), 201)
      const list = await ok(t.client.request('GET', t.widgets))
      expect(names(list)).toEqual(['a', 'b', 'c'])
      expect(String((list['metadata'] as Json)['resourceVersion'])).toMatch(/^\d+$/)
    },
    'of an empty collection has empty items': async (t) =>
      expect((await ok(t.client.request('GET', t.widgets)))['items']).toEqual([]),
    'of a namespace that does not exist is empty': async (t) => {
      expect((await ok(t.client.request('GET', `/apis/${t.group}/v1/namespaces/nosuch/widgets`)))['items']).toEqual([])
    },
    'spans namespaces without one in the path': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget(`only-${t.ns}`) }), 201)
      const list = await ok(
        t.client.request('GET', `/apis/${t.group}/v1/widgets`, {
          query: { fieldSelector: `metadata.name=only-${t.ns}` },
        }),
      )
      expect(names(list)).toEqual([`only-${t.ns}`])
    },
    'by metadata.namespace across namespaces': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget('a') }), 201)
      const list = await ok(
        t.client.request('GET', `/apis/${t.group}/v1/widgets`, {
          query: { fieldSelector: `metadata.namespace=${t.ns}` },
        }),
      )
      expect(names(list)).toEqual(['a'])
    },
    'at resourceVersion 0 succeeds': async (t) => {
      await fill(t)
      expect(names(await ok(t.client.request('GET', t.widgets, { query: { resourceVersion: 0 } })))).toEqual([
        'a',
        'b',
        'c',
        'd',
      ])
    },
    'not older than a version returns the newest state': async (t) => {
      const first = await ok(t.client.request('POST', t.widgets, { body: t.widget('a') }), 201)
      await ok(t.client.request('POST', t.widgets, { body: t.widget('b') }), 201)
      const resourceVersion = String((first['metadata'] as Json)['resourceVersion'])
      expect(
        names(
          await ok(
            t.client.request('GET', t.widgets, { query: { resourceVersion, resourceVersionMatch: 'NotOlderThan' } }),
          ),
        ),
      ).toEqual(['a', 'b'])
    },
    'exactly at a version returns that state': async (t) => {
      const first = await ok(t.client.request('POST', t.widgets, { body: t.widget('a') }), 201)
      await ok(t.client.request('POST', t.widgets, { body: t.widget('b') }), 201)
      await ok(t.client.request('DELETE', `${t.widgets}/a`))
      const resourceVersion = String((first['metadata'] as Json)['resourceVersion'])
      const list = await ok(
        t.client.request('GET', t.widgets, { query: { resourceVersion, resourceVersionMatch: 'Exact' } }),
      )
      expect(names(list)).toEqual(['a'])
      expect((list['metadata'] as Json)['resourceVersion']).toBe(resourceVersion)
    },
  }),
  ...area('B3.3 paging', {
    'pages return every object once': async (t) => {
      await fill(t)
      const seen: string[] = []
      let token = ''
      for (let page = 0; page < 9; page += 1) {
        const list = await ok(
          t.client.request('GET', t.widgets, { query: { limit: 1, ...(token !== '' && { continue: token }) } }),
        )
        seen.push(...names(list))
        token = String((list['metadata'] as Json)['continue'] ?? '')
        if (token === '') break
      }
      expect(seen).toEqual(['a', 'b', 'c', 'd'])
    },
    'counts the remaining items': async (t) => {
      await fill(t)
      const list = await ok(t.client.request('GET', t.widgets, { query: { limit: 1 } }))
      expect((list['metadata'] as Json)['remainingItemCount']).toBe(3)
    },
    'does not count the remaining items with a selector': async (t) => {
      await fill(t)
      const list = await ok(t.client.request('GET', t.widgets, { query: { limit: 1, labelSelector: 'app' } }))
      expect(list['metadata']).not.toHaveProperty('remainingItemCount')
      expect((list['metadata'] as Json)['continue']).not.toBe('')
    },
    'later pages return the state of the first': async (t) => {
      await fill(t)
      const first = await ok(t.client.request('GET', t.widgets, { query: { limit: 2 } }))
      await ok(t.client.request('DELETE', `${t.widgets}/c`))
      await ok(t.client.request('POST', t.widgets, { body: t.widget('e') }), 201)
      const second = await ok(
        t.client.request('GET', t.widgets, {
          query: { limit: 10, continue: String((first['metadata'] as Json)['continue']) },
        }),
      )
      expect(names(second)).toEqual(['c', 'd'])
      expect((second['metadata'] as Json)['resourceVersion']).toBe((first['metadata'] as Json)['resourceVersion'])
    },
    'a limit above the number of items has no continue': async (t) => {
      await fill(t)
      const list = await ok(t.client.request('GET', t.widgets, { query: { limit: 10 } }))
      expect((list['metadata'] as Json)['continue'] ?? '').toBe('')
    },
  }),
  ...Object.entries(labelCases).flatMap(([name, [selector, expected]]) =>
    area('B3.3 labelSelector', { [`label selector: ${name}`]: async (t) => await select(expected)(t, selector) }),
  ),
  ...Object.entries(fieldCases).flatMap(([name, [selector, expected]]) =>
    area('B3.3 fieldSelector', {
      [`field selector: ${name}`]: async (t) => await select(expected)(t, selector, 'fieldSelector'),
    }),
  ),
  ...Object.entries(badLabels).flatMap(([selector, message]) =>
    answers('B3.3 labelSelector', {
      [`label selector refused: ${selector}`]: [
        'GET',
        (t) => t.maps,
        () => ({ query: { labelSelector: selector } }),
        400,
        message,
      ],
    }),
  ),
  ...Object.entries(badFields).flatMap(([selector, message]) =>
    answers('B3.3 fieldSelector', {
      [`field selector refused: ${selector}`]: [
        'GET',
        (t) => t.maps,
        () => ({ query: { fieldSelector: selector } }),
        400,
        message,
      ],
    }),
  ),
  ...area('B3.3 fieldSelector', {
    'secrets are selected by type': async (t) => {
      const secrets = `/api/v1/namespaces/${t.ns}/secrets`
      await ok(t.client.request('POST', secrets, { body: { metadata: { name: 's' }, type: 'example.dev/x' } }), 201)
      expect(
        names(await ok(t.client.request('GET', secrets, { query: { fieldSelector: 'type=example.dev/x' } }))),
      ).toEqual(['s'])
      expect(names(await ok(t.client.request('GET', secrets, { query: { fieldSelector: 'type=Opaque' } })))).toEqual([])
    },
    'events are selected by their object': async (t) => {
      const events = `/api/v1/namespaces/${t.ns}/events`
      await ok(
        t.client.request('POST', events, {
          body: { metadata: { name: 'e' }, involvedObject: { kind: 'ConfigMap', name: 'a', namespace: t.ns } },
        }),
        201,
      )
      const query = {
        fieldSelector: `involvedObject.name=a,involvedObject.kind=ConfigMap,involvedObject.namespace=${t.ns}`,
      }
      expect(names(await ok(t.client.request('GET', events, { query })))).toEqual(['e'])
    },
    'namespaces are selected by phase': async (t) => {
      const list = await ok(
        t.client.request('GET', '/api/v1/namespaces', {
          query: { fieldSelector: `status.phase=Active,metadata.name=${t.ns}` },
        }),
      )
      expect(names(list)).toEqual([t.ns])
    },
    'custom resources by selectableFields': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget('a', { spec: { size: 1, color: 'blue' } }) }), 201)
      await ok(t.client.request('POST', t.widgets, { body: t.widget('b') }), 201)
      expect(
        names(await ok(t.client.request('GET', t.widgets, { query: { fieldSelector: 'spec.color=blue' } }))),
      ).toEqual(['a'])
    },
  }),
  ...answers('B3.3 ListOptions', {
    'a field selector on an unknown field of a custom resource': [
      'GET',
      (t) => t.widgets,
      () => ({ query: { fieldSelector: 'spec.size=1' } }),
      400,
      'field label not supported: spec.size',
    ],
    'resourceVersion that is not a number': [
      'GET',
      (t) => t.maps,
      () => ({ query: { resourceVersion: 'abc' } }),
      400,
      'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
    ],
    'resourceVersion from the future': [
      'GET',
      (t) => t.maps,
      () => ({ query: { resourceVersion: '999999999' } }),
      504,
      /^Timeout: Too large resource version: 999999999, current: \d+$/,
    ],
    'match without a version': [
      'GET',
      (t) => t.maps,
      () => ({ query: { resourceVersionMatch: 'Exact' } }),
      422,
      listOptions(
        'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided',
      ),
    ],
    'Exact with version 0': [
      'GET',
      (t) => t.maps,
      () => ({ query: { resourceVersion: '0', resourceVersionMatch: 'Exact' } }),
      422,
      listOptions('resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
    ],
    'an unknown match': [
      'GET',
      (t) => t.maps,
      () => ({ query: { resourceVersion: '1', resourceVersionMatch: 'Foo' } }),
      422,
      listOptions('resourceVersionMatch: Unsupported value: "Foo": supported values: "Exact", "NotOlderThan", ""'),
    ],
    'sendInitialEvents on a list': [
      'GET',
      (t) => t.maps,
      () => ({ query: { sendInitialEvents: true } }),
      422,
      listOptions('sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list'),
    ],
    'sendInitialEvents without a match': [
      'GET',
      (t) => t.maps,
      () => ({ query: { watch: true, sendInitialEvents: true } }),
      422,
      listOptions(
        'resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
      ),
    ],
    'a limit that is not a number': [
      'GET',
      (t) => t.maps,
      () => ({ query: { limit: 'abc' } }),
      400,
      'strconv.ParseInt: parsing "abc": invalid syntax',
    ],
    'a timeout that is not a number': [
      'GET',
      (t) => t.maps,
      () => ({ query: { timeoutSeconds: 'abc' } }),
      400,
      'strconv.ParseInt: parsing "abc": invalid syntax',
    ],
    'an invalid continue token': [
      'GET',
      (t) => t.maps,
      () => ({ query: { continue: 'abc' } }),
      400,
      "invalid continue token: continue key is not valid: invalid character 'i' looking for beginning of value",
    ],
  }),
]
