import { createLogger } from '@seamark/kube'
import { GatewayConfig } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { envoyFlagsOf, envoyOptions, SETTING_NAMES } from './envoy-flags.ts'

const log = createLogger({ level: 'silent' })
const optionsOf = (settings: Record<string, unknown>, env: NodeJS.ProcessEnv = {}) =>
  envoyOptions({ env }, envoyFlagsOf(GatewayConfig.parse(settings)), log, ['test'], SETTING_NAMES)

describe('the settings of Envoy', () => {
  it('are off by default, and with auto where no program is found', () => {
    expect(optionsOf({})).toBeUndefined()
    expect(optionsOf({ envoy: 'auto' }, { PATH: '/nonexistent' })).toBeUndefined()
  })

  it('name a program and its folder', () => {
    const options = optionsOf({ envoy: process.execPath, envoyDirectory: '/run/envoy' })
    expect(options).toEqual({ process: { program: process.execPath, folder: '/run/envoy' } })
  })

  it('open an xDS port for Envoys that others run', () => {
    expect(optionsOf({ envoy: 'external', xdsInsecure: true })).toEqual({ port: { host: '127.0.0.1', port: 8_001 } })
    expect(optionsOf({ envoy: 'external', xdsInsecure: true, xdsListen: '[::1]:9001' })).toEqual({
      port: { host: '::1', port: 9_001 },
    })
  })

  it('that cannot be used are refused by their names', () => {
    const cases: [settings: Record<string, unknown>, message: string][] = [
      [{ xdsListen: ':8001' }, 'gateway.xdsListen needs gateway.envoy: the built-in proxy does not use xDS'],
      [{ envoy: '/nonexistent' }, 'gateway.envoy /nonexistent: /nonexistent is not a program'],
      [
        { envoy: 'external' },
        'the xDS port needs gateway.xdsCaFile, gateway.xdsCertificateFile and gateway.xdsKeyFile, or gateway.xdsInsecure',
      ],
    ]
    for (const [settings, message] of cases) expect(() => optionsOf(settings)).toThrow(message)
  })
})
