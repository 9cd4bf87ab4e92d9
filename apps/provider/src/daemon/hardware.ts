/** Hardware of this machine in two forms: for the coordinator, and in full for the owner. */
import { cleanLabel, type Hardware } from '@inference/protocol';
import type { DaemonStatus } from '../control/daemon-status.js';
import type { HostFacts } from '../host/hardware/host-facts.js';
import type { MeasuredRates } from '../jobs/session-jobs.js';

export function reportedHardware(host: HostFacts): Hardware {
  const { performanceCores, efficiencyCores } = host;
  const label = (name: 'os_name' | 'os_version' | 'os_build', text: string): Partial<Hardware> =>
    text === '' ? {} : { [name]: cleanLabel(text, 64, 'unknown') };
  return {
    chip_family: cleanLabel(host.chipFamily, 64, 'unknown'),
    cpu_cores: host.cpuCores,
    gpu_cores: host.gpuCores,
    bandwidth_gbs: host.bandwidthGbs,
    ...(performanceCores === null || efficiencyCores === null
      ? {}
      : { performance_cores: performanceCores, efficiency_cores: efficiencyCores }),
    ...label('os_name', host.osName),
    ...label('os_version', host.osVersion),
    ...label('os_build', host.osBuild),
  };
}

export function hardwareStatus(host: HostFacts, rates: MeasuredRates): NonNullable<DaemonStatus['hardware']> {
  return {
    chip: host.chip,
    chip_family: host.chipFamily,
    cpu_cores: host.cpuCores,
    performance_cores: host.performanceCores,
    efficiency_cores: host.efficiencyCores,
    gpu_cores: host.gpuCores,
    memory_bytes: host.memoryBytes,
    bandwidth_gbs: host.bandwidthGbs,
    os: [host.osName, host.osVersion, host.osBuild].filter((part) => part !== '').join(' '),
    model_identifier: host.modelIdentifier,
    serial_number: host.serialNumber,
    decode_tps: rates.decodeTps,
    prefill_tps: rates.prefillTps,
  };
}
