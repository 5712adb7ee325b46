import { expect, it } from 'vitest'
import { findWrongImports } from './import-directions.ts'

const faults = (path: string, ...lines: string[]) => findWrongImports([{ path, text: lines.join('\n') }])

it.each([
  ['a package that is above', 'packages/kube/src/cache/cache.ts', "import { runApp } from '@seamark/operator'"],
  ['a part of a package that is not allowed', 'packages/apiserver/src/store/store.ts', "import '@seamark/kube'"],
  ['the same from a test', 'packages/dns/src/wire/name.test.ts', "import { connect } from '@seamark/kube'"],
  ['a folder to the right', 'packages/kube/src/client/rest.ts', "import { x } from '../cache/cache.ts'"],
  ['a folder to the right, as a type', 'packages/kube/src/client/a.ts', "import type { X } from '../cache/cache.ts'"],
  ['a folder to the right, re-exported', 'packages/kube/src/client/a.ts', "export * from '../cache/cache.ts'"],
  ['a folder to the right, when it is needed', 'packages/kube/src/client/a.ts', "await import('../cache/cache.ts')"],
  ['another capability', 'packages/operator/src/publish/act/act.ts', "import { x } from '../../fleet/names.ts'"],
  ['a later step', 'packages/operator/src/publish/decide/plan.ts', "import { act } from '../act/act.ts'"],
  ['a sibling of its layer', 'packages/gateway/src/proxy/listen/a.ts', "import { x } from '../upstream/health.ts'"],
  ['another command', 'packages/cli/src/commands/fleet/a.ts', "import { x } from '../gateway/envoy-flags.ts'"],
  ['a command by a flag', 'packages/cli/src/flags/a.ts', "import { x } from '../commands/crds.ts'"],
  ['more than its only folders', 'packages/apiserver/src/apply/a.ts', "import { x } from '../store/store.ts'"],
  ['the program', 'packages/operator/src/process/switches.ts', "import { runApp } from '../app/app.ts'"],
  ['helpers of another package', 'packages/dns/src/wire/a.test.ts', "import '@seamark/kube/testing'"],
  ['helpers of tests', 'packages/operator/src/serve/a.ts', "import { fakeClock } from '@seamark/kube/testing'"],
  ['processes', 'packages/operator/src/serve/a.ts', "import { spawn } from 'node:child_process'"],
  ['a folder without a layer', 'packages/dns/src/server/a.ts', "import { x } from '../elsewhere/b.ts'"],
  ['a source of a package, from a test', 'test/bench/kube.ts', "import { x } from '../../packages/kube/src/clock.ts'"],
])('refuses an import of %s', (_, path, line) => {
  expect(faults(path, line)).toEqual([expect.stringContaining(path)])
})

it('reads imports over several lines and reports each', () => {
  const found = faults(
    'packages/dns/src/wire/name.ts',
    'import {',
    '  Zone,',
    "} from '../zone/zone.ts'",
    "import { Server } from '../server/server.ts'",
  )
  expect(found).toEqual([
    'packages/dns/src/wire/name.ts imports ../zone/zone.ts: zone is not to the left of wire',
    'packages/dns/src/wire/name.ts imports ../server/server.ts: server is not to the left of wire',
  ])
})

it.each([
  ['to the left', 'packages/kube/src/cache/cache.ts', "import { x } from '../client/client.ts'"],
  ['within a layer whose folders belong together', 'packages/apiserver/src/codec/a.ts', "import '../store/store.ts'"],
  ['of a file without a layer', 'packages/operator/src/publish/act/act.ts', "import { x } from '../options.ts'"],
  [
    'of any folder, from a test beside the code',
    'packages/kube/src/client/a.test.ts',
    "import '../manager/manager.ts'",
  ],
  ['that is an exception', 'packages/operator/src/balance/provider/a.ts', "import '../../records/engine.ts'"],
  ['of helpers of tests, from a test', 'packages/apiserver/src/a.test.ts', "import '@seamark/kube/testing'"],
  ['of an allowed package', 'packages/operator/src/serve/a.ts', "import { x } from '@seamark/dns'"],
  ['of a command that it runs', 'packages/cli/src/commands/playground/a.ts', "import '../explain/explain.ts'"],
  ['of processes by the plug-in', 'packages/kube/src/config/exec-credential.ts', "import 'node:child_process'"],
  ['of another project', 'packages/dns/src/wire/name.ts', "import { x } from 'node:fs'"],
])('accepts an import %s', (_, path, line) => {
  expect(faults(path, line)).toEqual([])
})
