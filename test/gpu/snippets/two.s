
two.hsaco:	file format elf64-amdgpu

Disassembly of section .text:

0000000000001600 <two>:
	s_load_dwordx2 s[2:3], s[0:1], 0x0                         // 000000001600: BF800000 BF800000
	s_waitcnt lgkmcnt(0)                                       // 000000001608: BF800000
	global_load_dwordx4 v[4:7], v0, s[2:3]                     // 00000000160C: BF800000 BF800000
	ds_write_b128 v8, v[4:7]                                   // 000000001614: BF800000 BF800000
	s_barrier                                                  // 00000000161C: BF800000
	ds_read_b128 v[12:15], v9                                  // 000000001620: BF800000 BF800000
	ds_read2_b64 v[16:19], v10 offset1:1                       // 000000001628: BF800000 BF800000
	s_waitcnt lgkmcnt(0)                                       // 000000001630: BF800000
	v_fmac_f32_e32 v20, v12, v16                               // 000000001634: BF800000
	v_pk_fma_f32 v[22:23], v[12:13], v[16:17], v[22:23]        // 000000001638: BF800000 BF800000
	v_mov_b32_e32 v25, v20                                     // 000000001640: BF800000
	s_add_i32 s4, s4, 1                                        // 000000001644: BF800000
	s_cmp_lg_u32 s4, 16                                        // 000000001648: BF800000
	s_cbranch_scc1 65523                                       // 00000000164C: BF800000 <two+0x20>
	scratch_store_dword off, v20, off offset:4                 // 000000001650: BF800000 BF800000
	s_cbranch_vccnz 65519                                      // 000000001658: BF800000 <two+0xc>
	s_endpgm                                                   // 00000000165C: BF800000
