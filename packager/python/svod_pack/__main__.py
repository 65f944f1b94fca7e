from svod_pack._packer import main

main()
